#include "train/run.h"

#include <algorithm>
#include <future>

#include <fmt/format.h>
#include <unistd.h>

#include "backend/cpu/kernels.h"
#include "backend/cpu/scratch.h"
#include "backend/cuda/load.h"
#include "base/checked.h"
#include "base/fail.h"
#include "base/files.h"
#include "base/machine.h"
#include "base/signals.h"
#include "base/stderr.h"
#include "base/stdout.h"
#include "base/version.h"
#include "comm/core_lease.h"
#include "comm/launcher.h"
#include "comm/workers.h"
#include "train/binding.h"
#include "train/checkpoint.h"
#include "train/checkpoints.h"
#include "train/device_carrier.h"
#include "train/device_executor.h"
#include "train/device_team.h"
#include "train/gather_states.h"
#include "train/trainer.h"
#include "train/update_share.h"

namespace dpt {

Buffers::Sizes buffer_sizes(const Session& s) {
  size_t sums = 0;
  for (const auto* programs : {&s.programs, &s.test_programs})
    for (const auto& [rows, program] : *programs) sums = std::max(sums, program.sum_bytes);
  return {.weights = s.layout.total,
          // A GPU's gradients lie in its own memory, but where the CPUs sum them.
          .stored = s.on_gpu() && !s.sums_on_host() ? 0 : s.layout.stored,
          .halved = s.exchange.compress && (!s.on_gpu() || s.sums_on_host()) ? s.layout.stored : 0,
          .trainable = s.layout.trainable,
          .states = s.own_states() ? 0 : s.states(),
          .shards = s.who.shards,
          .sums = sums,
          .activations = s.on_gpu() ? 0 : Arenas::bytes(s),
          .window = s.own_states() ? std::min(kStateWindow, s.layout.trainable) : 0};
}

std::unique_ptr<cuda::DeviceApi> open_gpu(int index) { return cuda::cuda_module().open(index); }

namespace {

TeamShape team_shape(const Session& s) {
  return {.ranks = s.who.ranks, .workers_per_rank = s.who.workers_per_rank()};
}

// The memory that all workers share: the team's header, rank 0's decision where others need it,
// what GPUs meet with, the buffers.
struct Room {
  explicit Room(const Session& s, size_t decision_bytes = 0)
      : decision(Team::bytes(team_shape(s))),
        gpus(decision + decision_bytes),
        buffers(gpus + (s.on_gpu() ? DeviceTeam::bytes(s.who.total_workers()) : 0) +
                device_carrier_bytes(s)),
        bytes((Checked(buffers) + Buffers::bytes(buffer_sizes(s))).size()) {}
  size_t decision, gpus, buffers, bytes;  // where they begin, and the end
  Team team(const SharedMemory& memory, const Session& s, const TeamSettings& settings) const {
    return Team::create(memory.span().first(decision), team_shape(s), settings);
  }
};

// What workers share.
Memory shared_memory_of(const Session& s) {
  const Buffers::Sizes sizes = buffer_sizes(s);
  constexpr double kFloat = sizeof(float);
  Memory m;
  m.weights = kFloat * static_cast<double>(sizes.weights);
  m.gradients = (kFloat * static_cast<double>(sizes.stored) +
                 sizeof(uint16_t) * static_cast<double>(sizes.halved)) *
                sizes.shards;
  m.states = kFloat * static_cast<double>(sizes.trainable) * s.states();
  m.activations = static_cast<double>(sizes.activations);
  m.shared = static_cast<double>(Room(s).bytes) - m.activations;
  return m;
}

double timeout_of(const Session& s) {
  const auto given =
      s.mode->timeout ? s.mode->timeout(s.spec.parallel.settings) : std::optional<double>{};
  return given.value_or(TeamSettings{}.timeout_s);
}

// The first weights and states, or those that the run goes on with.
void fill(const Session& s, const std::optional<Resume>& resume, const Buffers& buffers,
          Generator& generator) {
  initialise(s, buffers, generator, !resume);
  if (resume) restore(s, *resume, buffers);
}

// A core for each worker of so many ranks, which no other run has. Without one for each, nobody is
// pinned, nor where threads that CUDA and NCCL start would be, too.
CoreLease lease_cores(const Session& s, int ranks) {
  const auto workers = static_cast<size_t>(ranks * s.who.workers_per_rank());
  if (s.on_gpu() || static_cast<size_t>(s.who.total_workers()) > usable_cores().size()) return {};
  CoreLease lease(allowed_cores(), workers);
  if (lease.cores().empty())
    print_stderr(
        "other runs of dptrain use {} of the {} cores, which leaves too few for the {} worker{} of "
        "this run: it shares cores with them, and all of them slow down; use fewer with cores=N, "
        "or "
        "wait for another run to end\n",
        lease.taken(), allowed_cores().size(), workers, workers == 1 ? "" : "s");
  return lease;
}

// Those of one rank, whose workers' are `first` of the list and those behind it.
std::vector<int> cores_from(std::span<const int> cores, int first, int workers) {
  const auto begin = static_cast<size_t>(first), count = static_cast<size_t>(workers);
  if (begin + count > cores.size()) return {};
  return {cores.begin() + first, cores.begin() + first + workers};
}

// What the run is for: other files go before these do.
void save_weights(const Session& s, const Buffers& buffers, const Outcome& outcome,
                  const std::string& folder, Checkpoints& checkpoints, Disk& disk) {
  const std::string path = model_file(folder);
  try {
    checkpoints.with_room(path, [&] { save_model(s, buffers, outcome, path, disk); });
  } catch (const Error& e) {
    if (checkpoints.newest().empty()) throw;
    fail(e.fault(), "{}; then --resume {} goes on from the newest checkpoint", e.what(),
         checkpoints.newest());
  }
}

// What the ranks of this process, and those that it forks, have in common.
struct RunParts {
  const Session& session;
  const RunRequest& request;
  const std::string& folder;
  const std::optional<Resume>& resume;
  Buffers buffers;
  const Generator& generator;
  GpuAccess gpus;
  std::span<const float> resumed_states;
  ReservedRoom* room_for_weights = nullptr;
  std::span<Trace> traces{};
};

// One rank, in its own process or in this one.
int run_one_rank(const RunParts& parts, Team team, int rank, std::span<const int> cores) {
  const Session& s = parts.session;
  const std::optional<Resume>& resume = parts.resume;
  RankState state(s, parts.buffers, team, rank, parts.generator);
  state.gpus = parts.gpus;
  const Probe* probe = parts.request.probe;
  std::unique_ptr<Reporter> reporter;
  if (rank == 0 && !probe)
    reporter = std::make_unique<Reporter>(s, parts.folder, resume.has_value());
  Disk machines_own;
  Disk& disk = parts.request.disk ? *parts.request.disk : machines_own;
  Checkpoints checkpoints(s, parts.folder, parts.request.place.resolved_spec,
                          resume ? resume->path : "", disk);
  if (!probe && s.spec.save.on) state.checkpoints = &checkpoints;
  if (resume) state.resumed = &resume->state;
  state.resumed_states = parts.resumed_states;
  Outcome outcome;
  const auto body = [&](int worker) {
    const bool first = worker == rank * s.who.workers_per_rank();
    StageClock* clock = probe ? &probe->clocks[static_cast<size_t>(worker)] : nullptr;
    Trace* trace = parts.traces.empty() ? nullptr : &parts.traces[static_cast<size_t>(worker)];
    team.meet_patiently(worker);  // rank 0 has filled the weights, which GPUs copy first of all
    const Outcome mine =
        train_worker(state, worker, first ? reporter.get() : nullptr, clock, trace);
    if (!first) {
      for (int r = 0; r < s.who.ranks; ++r) team.meet_patiently(worker);
      return;
    }
    outcome = mine;
    if (probe) probe->last(rank);
    if (rank == 0 && !probe) {
      Progress saving = team.progress(rank);
      saving.phase = Phase::saving;
      team.set_progress(worker, saving);
      if (parts.room_for_weights) parts.room_for_weights->release();
      save_weights(s, parts.buffers, outcome, parts.folder, checkpoints, disk);
      std::remove(previous_model_file(parts.folder).c_str());
      if (!mine.stopped_by) checkpoints.finish();
    }
    // In the order of the ranks, whatever their own.
    for (int r = 0; r < s.who.ranks; ++r) {
      if (r == rank && !mine.stopped_by && !probe)
        print_stdout("Training on {} {} finished.\n", s.on_gpu() ? "GPU" : "CPU", r);
      team.meet_patiently(worker);  // while the first one saves
    }
  };
  run_workers(team, rank, body, cores);
  if (reporter) reporter->end(outcome.stopped_by, checkpoints.newest());
  return outcome.stopped_by ? exit_code_of(outcome.stopped_by) : 0;
}

double bytes_of(const Dataset& d) {
  const auto bytes = [](const Table& t) {
    return static_cast<double>(t.stored()) * static_cast<double>(size_of(t.desc.dtype));
  };
  const auto &x = d.inputs.data, &y = d.targets.data;
  const bool shared = !x.owner_before(y) && !y.owner_before(x);  // both are windows of one text
  const bool kept = !d.reader && !shared;  // inputs that are read on the way are not
  return (kept ? bytes(d.inputs) : 0) + bytes(d.targets);
}

struct KernelBytes {
  double own = 0;      // of each process: kernels, and code that they made for themselves
  double scratch = 0;  // of each worker
};

// Prepares one worker's kernels, in a thread, as a worker does. What they share in a process stays.
KernelBytes prepare_kernels(const Session& s) {
  KernelBytes out;
  const auto prepare = [&] {
    std::vector<std::unique_ptr<Kernel>> kernels;
    for (const auto* programs : {&s.programs, &s.test_programs})
      for (const auto& [rows, program] : *programs)
        for (Part part : {Part::prologue, Part::forward, Part::loss, Part::backward})
          for (const Instruction& i : program.part(part)) {
            const bool whole = !i.each_shard || program.shard_graphs.empty();
            const Graph& graph = whole ? program.graph : program.shard_graphs.rbegin()->second;
            const int64_t samples = whole ? rows.total() : rows.largest;
            kernels.push_back(dpt::prepare(i, query_of(graph, i.node, {{samples}, rows.largest})));
          }
    out.scratch = static_cast<double>(scratch_bytes());
    out.own = static_cast<double>(memory_use().own);
  };
  const auto before = static_cast<double>(memory_use().own);
  std::async(std::launch::async, prepare).get();
  out.own = std::max(0.0, out.own - before);
  return out;
}

// Samples that are read on the way: the batch that is computed and the next one.
double ahead_bytes(const Dataset& d, int64_t batch) {
  if (!d.reader) return 0;
  return 2.0 * static_cast<double>(batch) * static_cast<double>(d.inputs.sample().elements());
}

// What workers take beside the buffers that they share. The constants are what runs of the shipped
// specs were seen to take (x86-64, glibc 2.36), rounded; tests/bench/memory.py compares.
double worker_bytes(const Session& s, const KernelBytes& kernels) {
  constexpr double kKiB = 1024, kFloat = sizeof(float);
  constexpr double kCode = 250 * kKiB;    // pages of the program that only a step touches
  constexpr double kRank = 150 * kKiB;    // pages that a process shared until it wrote
  constexpr double kThread = 130 * kKiB;  // stack, and glibc's heap of a thread
  const double ranks = s.who.ranks, workers = s.who.total_workers();
  double out = ranks > 1 ? ranks * kRank : kCode;  // of several, files are not counted together
  out += (workers - ranks) * kThread;
  // The next epoch's order is made while the last one's is there; ranks deal theirs from all.
  const double order = sizeof(uint32_t) * static_cast<double>(s.train.size());
  out += order * (s.batches->dealt() ? ranks + 2 : 2 * ranks);
  for (const auto& share :
       share_update(s.programs.begin()->second, s.layout, s.global_batch, s.who)) {
    out += kFloat * static_cast<double>(tile_elements(share));
    if (s.own_states())
      out += kFloat * static_cast<double>(OwnStates::elements(share)) * s.states();
  }
  if (s.exchange.compress)
    out += workers * kFloat * static_cast<double>(CompressedGradients::kTile) * (s.who.shards + 1);
  out += workers * kernels.scratch + (ranks - 1) * kernels.own;
  out += ahead_bytes(s.train, s.global_batch);
  if (s.test) out += ahead_bytes(*s.test, s.spec.evaluate.batch_size);
  if (s.batches->accumulate() > 1)
    out += workers *
           static_cast<double>(later_bytes(s.programs.begin()->second, [](int) { return true; }));
  return out;
}

}  // namespace

void check_memory(const Session& s) {
  const Memory m = shared_memory_of(s);
  const auto have = static_cast<double>(usable_memory());
  constexpr double kMiB = 1048576;
  const double lasting = m.shared + (s.own_states() ? m.states : 0);
  if (lasting + m.activations > have)
    fail(Fault::memory,
         "the run needs {:.0f} MiB ({:.0f} MiB of weights, gradients of {} shards and optimizer "
         "states, {:.0f} MiB of activations), but {:.0f} MiB are free; take a smaller batch, fewer "
         "shards, or a smaller model",
         (lasting + m.activations) / kMiB, lasting / kMiB, s.who.shards, m.activations / kMiB,
         have / kMiB);
}

Memory memory_of(const Session& s) {
  check_memory(s);
  Memory m = shared_memory_of(s);
  // A GPU's kernels are prepared on it.
  const KernelBytes kernels = s.on_gpu() ? KernelBytes{} : prepare_kernels(s);
  const MemoryUse now = memory_use();
  m.data = bytes_of(s.train) + (s.test ? bytes_of(*s.test) : 0);
  m.program = std::max(0.0, static_cast<double>(now.resident) - (s.train.made ? m.data : 0));
  m.workers = worker_bytes(s, kernels);
  m.before = static_cast<double>(now.peak);
  return m;
}

namespace {

// Seconds without progress after which a GPU is taken for stuck.
double stuck_gpu_s(const Session& s, const RunRequest& request) {
  return std::max(request.stuck_gpu_s, timeout_of(s));
}

TeamSettings team_settings(const Session& s, const RunRequest& request, const CoreLease& cores) {
  TeamSettings out{.cores = static_cast<int>(usable_cores().size()), .timeout_s = timeout_of(s)};
  // Workers that share cores with other runs do not spin.
  if (cores.taken() > 0 && cores.cores().empty())
    out.cores = std::max(1, out.cores - static_cast<int>(cores.taken()));
  if (s.on_gpu()) out.stuck_s = stuck_gpu_s(s, request);
  return out;
}

std::vector<float> own_states_of(const Session& s, const std::optional<Resume>& resume) {
  return resume && s.own_states() ? restore_own_states(s, *resume) : std::vector<float>();
}

// One rank of those that somebody else started.
int run_given_rank(const Session& s, const RunRequest& request, Disk& disk) {
  const int rank = request.world->rank;
  const Buffers::Sizes sizes = buffer_sizes(s);
  const Room room(s, RunStart::kDecisionBytes);
  const CoreLease lease = lease_cores(s, 1);
  const TeamSettings settings = team_settings(s, request, lease);
  Rendezvous ranks = Rendezvous::join(
      *request.world, {request.place.resolved_spec + request.place.resume, version(), room.bytes},
      [&](SharedMemory& memory) { room.team(memory, s, settings); },
      {.timeout_s = settings.timeout_s, .directory = {}});
  const Team team = Team::attach(ranks.memory().span().first(room.decision));
  const Buffers buffers(ranks.memory().data() + room.buffers, sizes);
  const auto decision = ranks.memory().span().subspan(room.decision, RunStart::kDecisionBytes);
  // From here on what takes long delays no heartbeat, and what fails the other ranks learn.
  return run_joined(ranks, team, rank, [&] {
    std::optional<RunStart> start;
    if (rank == 0) {
      start.emplace(s, request.place, disk);
      start->write(decision);
    } else {
      start.emplace(s, request.place, decision, team, disk);
    }
    Generator generator(static_cast<uint64_t>(s.spec.seed));
    // Every rank draws the weights, since its generator goes on from there; rank 0's are taken.
    if (rank == 0) {
      fill(s, start->resume(), buffers, generator);
    } else if (!start->resume()) {
      const SharedMemory own = SharedMemory::create_private(Buffers::bytes(sizes));
      initialise(s, Buffers(own.data(), sizes), generator);
    }
    if (rank == 0) start->begin();
    const std::vector<float> resumed_states = own_states_of(s, start->resume());
    const RunParts parts{
        .session = s,
        .request = request,
        .folder = start->folder(),
        .resume = start->resume(),
        .buffers = buffers,
        .generator = generator,
        .gpus = {request.open_gpu, ranks.memory().data() + room.gpus, stuck_gpu_s(s, request)},
        .resumed_states = resumed_states,
        .room_for_weights = start->room_for_weights()};
    return run_one_rank(parts, team, rank, lease.cores());
  });
}

// All ranks, which dptrain starts itself.
int run_own_ranks(const Session& s, const RunRequest& request, Disk& disk) {
  const Room room(s);
  std::optional<RunStart> start;
  if (!request.probe) start.emplace(s, request.place, disk);
  const std::optional<Resume> none;
  const std::optional<Resume>& resume = start ? start->resume() : none;
  const CoreLease lease = request.probe ? CoreLease() : lease_cores(s, s.who.ranks);
  const std::span<const int> cores =
      request.probe ? request.probe->cores : std::span<const int>(lease.cores());
  const TeamSettings settings = team_settings(s, request, lease);
  Generator generator(static_cast<uint64_t>(s.spec.seed));
  const SharedMemory memory =
      s.who.ranks > 1 ? SharedMemory::create(room.bytes) : SharedMemory::create_private(room.bytes);
  Team team = room.team(memory, s, settings);
  const std::vector<float> resumed_states = own_states_of(s, resume);
  const size_t workers = static_cast<size_t>(s.who.total_workers());
  std::optional<SharedMemory> notes;
  std::span<Trace> traces;
  if (!request.trace.empty()) {
    notes.emplace(SharedMemory::create(workers * sizeof(Trace)));
    traces = {reinterpret_cast<Trace*>(notes->data()), workers};
  }
  const Buffers buffers(memory.data() + room.buffers, buffer_sizes(s));
  fill(s, resume, buffers, generator);
  if (start) start->begin();
  const RunParts parts{
      .session = s,
      .request = request,
      .folder = start ? start->folder() : request.place.folder,
      .resume = resume,
      .buffers = buffers,
      .generator = generator,
      .gpus = {request.open_gpu, memory.data() + room.gpus, stuck_gpu_s(s, request)},
      .resumed_states = resumed_states,
      .room_for_weights = start ? start->room_for_weights() : nullptr,
      .traces = traces};
  const int code = launch(team, [&](int rank) {
    const int per_rank = s.who.workers_per_rank();
    const int ended = run_one_rank(parts, team, rank, cores_from(cores, rank * per_rank, per_rank));
    if (s.who.ranks > 1 && ended == 0) flush_output();  // a process of its own, which ends here
    return ended;
  });
  if (!traces.empty()) write_text(request.trace, chrome_trace(traces, s.who));
  return code;
}

}  // namespace

int run(const Session& s, const RunRequest& request) {
  check_memory(s);
  Disk machines_own;
  Disk& disk = request.disk ? *request.disk : machines_own;
  return request.world && request.world->size > 1 ? run_given_rank(s, request, disk)
                                                  : run_own_ranks(s, request, disk);
}

void record(const Session& s, std::span<Trace> traces) {
  const Room room(s);
  const CoreLease lease = lease_cores(s, 1);
  const SharedMemory memory = SharedMemory::create_private(room.bytes);
  const Team team = room.team(memory, s, {});
  const Buffers buffers(memory.data() + room.buffers, buffer_sizes(s));
  Generator generator(static_cast<uint64_t>(s.spec.seed));
  initialise(s, buffers, generator);
  RankState state(s, buffers, team, 0, generator);
  run_workers(
      team, 0,
      [&](int worker) {
        train_worker(state, worker, nullptr, nullptr, &traces[static_cast<size_t>(worker)]);
      },
      lease.cores());
}

Evaluation evaluate(const Session& s, const OpenGpu& open) {
  check_memory(s);
  const Room room(s);
  const CoreLease lease = lease_cores(s, 1);
  const SharedMemory memory = SharedMemory::create_private(room.bytes);
  const Team team = room.team(memory, s, {});
  const Buffers buffers(memory.data() + room.buffers, buffer_sizes(s));
  const GpuAccess gpus{open, memory.data() + room.gpus, {}};
  Generator generator(static_cast<uint64_t>(s.spec.seed));
  initialise(s, buffers, generator);
  std::optional<Ahead> ahead;
  if (s.test->reader) ahead.emplace(*s.test, *s.test_batches, s.who, 0);
  Evaluation out;
  run_workers(
      team, 0,
      [&](int worker) {
        const StepExecutor::Samples samples{nullptr, ahead ? &*ahead : nullptr};
        const Evaluation mine =
            s.on_gpu() ? make_device_executor(s, buffers, team, worker, gpus, samples)->evaluate()
                       : Executor(s, buffers, team, worker, nullptr, samples).evaluate();
        if (worker == 0) out = mine;
      },
      lease.cores());
  return out;
}

}  // namespace dpt
