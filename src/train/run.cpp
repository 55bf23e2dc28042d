#include "train/run.h"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>
#include <unistd.h>

#include "backend/cuda/interface/load.h"
#include "backend/cuda/interface/nccl_environment.h"
#include "base/count.h"
#include "base/fail.h"
#include "base/files.h"
#include "base/machine.h"
#include "base/signals.h"
#include "base/stderr.h"
#include "base/stdout.h"
#include "base/version.h"
#include "checkpoint/model_file.h"
#include "checkpoint/store.h"
#include "comm/core_lease.h"
#include "comm/launcher.h"
#include "comm/once_per_job.h"
#include "comm/watchdog.h"
#include "comm/workers.h"
#include "engine/gpu/executor.h"
#include "train/best_weights.h"
#include "train/final_evaluation.h"
#include "train/memory_estimate.h"
#include "train/run_folder.h"
#include "train/shared_layout.h"
#include "train/trainer.h"

namespace dpt {

std::unique_ptr<cuda::DeviceApi> open_gpu(int index) { return cuda::cuda_module().open(index); }

double timeout_of(const Spec& spec) {
  const auto& mode = *static_cast<const ModeType*>(spec.parallel.what);
  const auto given = mode.timeout ? mode.timeout(spec.parallel.settings) : std::optional<double>{};
  return given.value_or(TeamSettings{}.timeout_s);
}

namespace {

// Fills the buffers with initial values, or with those of the checkpoint. Drawing the initial
// values advances the generator in both cases.
// On other hosts than the first, whatever is in files comes from the first one later.
void fill(const Session& s, const std::optional<Resume>& resume, const Buffers& buffers,
          Generator& generator) {
  const bool first_host = s.devices.topology.host == 0;
  initialise(s.settings, s.devices, s.precision, s.model, buffers, generator,
             !resume && first_host);
  if (resume && first_host) restore(s, *resume, buffers);
}

// Begins to write the run directory, and says which weights a new run begins with.
void begin(const Session& s, RunStart& start) {
  start.begin();
  if (!start.resume()) print_stderr("{}", partial_weights_text(s.settings, s.model));
}

// Leases a core for each worker of `ranks` ranks, so that no other run of dptrain uses it. The
// lease is empty (workers are not pinned) if there are too few cores, and on GPUs, where the
// threads that CUDA and NCCL start would be pinned too.
CoreLease lease_cores(const Devices& devices, int ranks) {
  const auto workers = static_cast<size_t>(ranks * devices.topology.workers_per_rank());
  const Rows own = devices.topology.workers_of_host(devices.topology.host);
  if (devices.on_gpu() || static_cast<size_t>(own.count()) > usable_cores().size()) return {};
  return {allowed_cores(), workers};
}

// workers: of all ranks on this machine.
void warn_of_shared_cores(const CoreLease& lease, int workers) {
  if (lease.taken() == 0 || !lease.cores().empty()) return;
  print_stderr(
      "other runs of dptrain use {} of the {} cores, which leaves too few for the {} of this run: "
      "it shares cores with them, and all of them slow down; use fewer with cores=N, or wait for "
      "another run to end\n",
      lease.taken(), allowed_cores().size(), counted(workers, "worker"));
}

CoreLease lease_own_cores(const Devices& devices, int ranks) {
  CoreLease lease = lease_cores(devices, ranks);
  warn_of_shared_cores(lease, ranks * devices.topology.workers_per_rank());
  return lease;
}

// The cores of one rank, whose first worker uses number `first` of the list.
std::vector<int> cores_from(std::span<const int> cores, int first, int workers) {
  const auto begin = static_cast<size_t>(first), count = static_cast<size_t>(workers);
  if (begin + count > cores.size()) return {};
  return {cores.begin() + first, cores.begin() + first + workers};
}

// Saves the weights, the result of the run: if the disk is full, old checkpoints are removed first.
void save_weights(const Session& s, const Buffers& buffers, const Outcome& outcome,
                  const std::string& folder, CheckpointStore& checkpoints, Disk& disk) {
  const std::string path = model_file(folder);
  check_finite(s.model, buffers, outcome.epochs, outcome.steps);
  try {
    checkpoints.retry_with_space(
        path, [&] { save_model(s.precision, s.model, buffers, outcome.scaler, path, disk); });
  } catch (const Error& e) {
    if (checkpoints.newest().empty()) throw;
    fail(e.fault(), "{}; then resume from the newest checkpoint with --resume {}", e.what(),
         checkpoints.newest());
  }
}

// Says in the run directory how the run ended, for `dptrain runs`. Where that cannot be written the
// error itself is what the user needs.
void write_failure(const std::string& folder, int code, const std::string& report) {
  try {
    write_text(failure_file(folder), fmt::format("exit code {}\n{}\n", code, report));
  } catch (const Error&) {
  }
}

// The same for a rank that could not say it: it was killed, or failed before its first step.
void write_failure_of_lost_rank(const std::string& folder, const Team& team) {
  std::error_code unseen;
  const bool says = std::filesystem::exists(failure_file(folder), unseen);
  if (!team.broken() || team.exit_code() == 128 + SIGPIPE || says) return;
  write_failure(folder, team.exit_code(), team.reason());
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
  Link* link = nullptr;  // to other hosts, on the leader of each
  std::span<const float> resumed_states;
  ReservedSpace* space_for_weights = nullptr;
  std::span<Trace> traces{};
};

std::optional<TensorBoardLog::Start> resumed_at(const std::optional<Resume>& resume) {
  if (!resume) return {};
  return TensorBoardLog::Start{.step = resume->state.step, .of_epoch = resume->state.of_epoch};
}

// Runs one rank, in a process of its own or in this one. Returns its exit code.
int run_one_rank(const RunParts& parts, Team team, int rank, std::span<const int> cores) {
  const Session& s = parts.session;
  const std::optional<Resume>& resume = parts.resume;
  RankState state(s, parts.buffers, team, rank, parts.generator);
  state.gpus = parts.gpus;
  state.link = parts.link;
  // The first rank of the first host writes the run directory and prints the results.
  const bool first_rank = state.number() == 0;
  const int ranks = team.shape().ranks;
  const Probe* probe = parts.request.probe;
  Disk machines_own;
  Disk& disk = parts.request.disk ? *parts.request.disk : machines_own;
  std::unique_ptr<Reporter> reporter;
  if (first_rank && !probe)
    reporter = std::make_unique<Reporter>(
        s, parts.folder,
        Reporter::Settings{.resumed = resumed_at(resume),
                           .run_id = parts.request.identity.id,
                           .log_interval_s = parts.request.log_interval_s,
                           .cpus = parts.request.cpus,
                           .disk = &disk});
  CheckpointStore checkpoints(s, parts.folder, parts.request.location.resolved_spec,
                              resume ? resume->path : "", disk);
  if (!probe && s.settings.spec.save.on) state.checkpoints = &checkpoints;
  BestWeights best_weights(s, parts.folder, checkpoints, disk);
  if (!probe) state.best_weights = &best_weights;
  if (resume) state.resumed = &resume->state;
  state.resumed_states = parts.resumed_states;
  // A call into the GPU driver may block forever, even while a run ends.
  std::optional<Watchdog> watchdog;
  if (s.devices.on_gpu()) watchdog.emplace(team, rank, parts.request.watchdog_s);
  Outcome outcome;
  const auto body = [&](int worker) {
    const bool first = worker == rank * s.devices.topology.workers_per_rank();
    const auto at = static_cast<size_t>(worker);
    const WorkerObservers observers{.reporter = first ? reporter.get() : nullptr,
                                    .clock = probe ? &probe->clocks[at] : nullptr,
                                    .trace = parts.traces.empty() ? nullptr : &parts.traces[at]};
    team.barrier_without_limit(
        worker);  // rank 0 has filled the weights, which GPUs copy first of all
    const Outcome mine = train_worker(state, worker, observers);
    if (!first) {
      for (int r = 0; r < ranks; ++r) team.barrier_without_limit(worker);
      return;
    }
    outcome = mine;
    if (reporter) reporter->settle();
    if (probe) probe->last(rank);
    if (first_rank && !probe) {
      Progress saving = team.progress(rank);
      saving.phase = Phase::saving;
      team.set_progress(worker, saving);
      if (parts.space_for_weights) parts.space_for_weights->release();
      save_weights(s, parts.buffers, outcome, parts.folder, checkpoints, disk);
      std::remove(previous_model_file(parts.folder).c_str());
      if (!mine.stopped_by) checkpoints.finish();
    }
    // No host reports success before the first one has saved.
    if (rank == 0 && parts.request.hosts) parts.request.hosts->confirm_saved();
    // Print in the order of the ranks.
    for (int r = 0; r < ranks; ++r) {
      if (r == rank && !mine.stopped_by && !probe)
        print_stdout("Training on {} {} finished.\n", s.devices.on_gpu() ? "GPU" : "CPU",
                     state.number());
      team.barrier_without_limit(worker);  // waits while the first worker saves
    }
  };
  try {
    run_workers(team, rank, body, cores);
    if (reporter && s.data.final_test && !outcome.stopped_by)
      evaluate_final_test(s, parts.folder, outcome, *reporter, parts.gpus.open, cores);
  } catch (const Error& e) {
    if (reporter)  // the exit code is of the rank that failed first
      write_failure(parts.folder, team.broken() ? team.exit_code() : static_cast<int>(e.fault()),
                    e.report());
    throw;
  }
  if (reporter)
    reporter->end({.stopped_by = outcome.stopped_by,
                   .checkpoint = checkpoints.newest(),
                   .best = outcome.best,
                   .early_stop = outcome.early_stop,
                   .stopped_early = outcome.stopped_early});
  return outcome.stopped_by ? exit_code_of(outcome.stopped_by) : 0;
}

// Seconds without progress after which a GPU counts as stuck.
double stuck_gpu_s(const Session& s, const RunRequest& request) {
  return std::max(request.stuck_gpu_s, timeout_of(s.settings.spec));
}

TeamSettings team_settings(const Session& s, const RunRequest& request, const CoreLease& cores) {
  TeamSettings out{.cores = static_cast<int>(usable_cores().size()),
                   .timeout_s = timeout_of(s.settings.spec)};
  // Workers that share cores with other runs must not spin at barriers.
  if (cores.taken() > 0 && cores.cores().empty())
    out.cores = std::max(1, out.cores - static_cast<int>(cores.taken()));
  if (s.devices.on_gpu()) out.stuck_s = stuck_gpu_s(s, request);
  if (request.hosts) {
    out.first_rank =
        static_cast<int>(s.devices.topology.ranks_of_host(request.hosts->host()).begin);
    out.host = request.hosts->name();
    out.timeout_s = std::min(out.timeout_s, RunHosts::kSilentRankS);
  }
  return out;
}

std::vector<float> own_states_of(const Session& s, const std::optional<Resume>& resume) {
  return resume && s.devices.own_states() ? restore_own_states(s.settings, s.model, *resume)
                                          : std::vector<float>();
}

// A run stopped by its batch system asks with its exit code to be requeued. Without a checkpoint
// the job would start over forever, so the run fails instead. speaks: print the reason.
int code_of_end(int code, const std::string& folder, bool speaks) {
  const bool requeues = code == exit_code_of(SIGUSR1);
  if (!requeues || !checkpoints_in(checkpoint_folder(folder)).empty()) return code;
  if (speaks)
    print_stderr(
        "there is no checkpoint, so a requeued job would start from the beginning: the exit code "
        "is "
        "{} instead of {}; free some disk space, or leave out `save: false`\n",
        static_cast<int>(Fault::failed), code);
  return static_cast<int>(Fault::failed);
}

// The engine that carries data between hosts.
std::string_view link_backend(const Exchange& exchange) { return exchange.by_mpi ? "mpi" : "gloo"; }

// Decides how a rank starts, or receives the decision: from host 0, or from the leader of its host.
void decide_start(std::optional<RunStart>& start, const Session& s, const RunRequest& request,
                  Team team, int rank, std::span<std::byte> decision, Disk& disk) {
  if (rank != 0) {
    start.emplace(s, request.location, decision, team, disk);
    return;
  }
  RunHosts* const hosts = request.hosts;
  if (!hosts || hosts->host() == 0) start.emplace(s, request.location, disk);
  if (hosts) {
    const std::string text = hosts->from_first(start ? start->text() : std::string());
    if (!start) start.emplace(s, request.location, text, disk);
  }
  start->write(decision);
}

// Runs one rank of a run whose ranks a launcher started. Within a host, ranks are counted from 0.
int run_given_rank(const Session& s, const RunRequest& request, Disk& disk) {
  const World world = request.hosts ? request.hosts->local() : *request.world;
  const int rank = world.rank;
  const bool first_host = !request.hosts || request.hosts->host() == 0;
  if (request.hosts) request.hosts->load(link_backend(s.devices.exchange));
  const Buffers::Sizes& sizes = s.layout.buffers;
  const SharedLayout layout(s, RunStart::kDecisionBytes);
  const CoreLease lease = lease_cores(s.devices, 1);
  // The first rank that gets no core speaks for all.
  std::optional<OncePerJob> once;
  if (lease.taken() > 0 && lease.cores().empty()) once.emplace(world.job, "cores");
  if (once && once->speaks())
    warn_of_shared_cores(lease, world.local_size * s.devices.topology.workers_per_rank());
  const TeamSettings settings = team_settings(s, request, lease);
  Rendezvous ranks =
      Rendezvous::join(world,
                       {.spec = request.location.resolved_spec + request.location.resume,
                        .build = version(),
                        .bytes = layout.bytes},
                       [&](SharedMemory& memory) { layout.team(memory, s, settings); },
                       {.timeout_s = settings.timeout_s, .directory = {}});
  const Team team = Team::attach(ranks.memory().span().first(layout.decision));
  const Buffers buffers(ranks.memory().data() + layout.buffers, sizes);
  const auto decision = ranks.memory().span().subspan(layout.decision, RunStart::kDecisionBytes);
  std::optional<RunStart> start;
  // run_joined() keeps the heartbeat going during slow steps and tells other ranks about a failure.
  const auto body = [&] {
    Link* link = nullptr;
    if (request.hosts && rank == 0) {
      request.hosts->watch(team);
      request.hosts->compare(s.data);
      // GPUs may be busy for as long as a host waits for its own.
      link = &request.hosts->connect(s.devices.on_gpu() ? std::optional(stuck_gpu_s(s, request))
                                                        : std::nullopt);
    }
    decide_start(start, s, request, team, rank, decision, disk);
    Generator generator(static_cast<uint64_t>(s.settings.spec.seed));
    // Every rank draws the weights, to advance its generator; only rank 0's are used.
    if (rank == 0) {
      fill(s, start->resume(), buffers, generator);
    } else if (!start->resume()) {
      const SharedMemory own = SharedMemory::create_private(Buffers::bytes(sizes));
      initialise(s.settings, s.devices, s.precision, s.model, Buffers(own.data(), sizes),
                 generator);
    }
    if (rank == 0 && first_host) {
      begin(s, *start);
      if (request.begun) request.begun(start->folder());
    }
    const std::vector<float> resumed_states = own_states_of(s, start->resume());
    GpuAccess gpus{.open = request.open_gpu,
                   .shared = ranks.memory().data() + layout.gpus,
                   .stuck_s = stuck_gpu_s(s, request),
                   .link = link};
    if (link) gpus.broadcast = [&](std::span<std::byte> id) { request.hosts->broadcast(id); };
    const RunParts parts{.session = s,
                         .request = request,
                         .folder = start->folder(),
                         .resume = start->resume(),
                         .buffers = buffers,
                         .generator = generator,
                         .gpus = gpus,
                         .link = link,
                         .resumed_states = resumed_states,
                         .space_for_weights = start->space_for_weights()};
    return run_one_rank(parts, team, rank, lease.cores());
  };
  const int code = run_joined(ranks, team, rank, body, [&] {
    if (request.hosts) request.hosts->end(!team.broken());
  });
  if (!first_host) return code;
  const bool speaks = rank == (team.broken_by() == 0 ? 1 : 0);  // the lowest rank that is left
  const bool begun = team.progress(0).epoch > 0;
  if (code == static_cast<int>(Fault::rank) && start && speaks && begun) {
    write_failure_of_lost_rank(start->folder(), team);
    print_resume_hint(start->folder(), start->resume());
  }
  return start ? code_of_end(code, start->folder(), rank == 0) : code;
}

// Runs all ranks; dptrain starts them itself.
int run_own_ranks(const Session& s, const RunRequest& request, Disk& disk) {
  const SharedLayout layout(s);
  std::optional<RunStart> start;
  if (!request.probe) start.emplace(s, request.location, disk);
  const std::optional<Resume> none;
  const std::optional<Resume>& resume = start ? start->resume() : none;
  const CoreLease lease =
      request.probe ? CoreLease() : lease_own_cores(s.devices, s.devices.topology.ranks);
  const std::span<const int> cores =
      request.probe ? request.probe->cores : std::span<const int>(lease.cores());
  const TeamSettings settings = team_settings(s, request, lease);
  Generator generator(static_cast<uint64_t>(s.settings.spec.seed));
  const SharedMemory memory = s.devices.topology.ranks > 1
                                  ? SharedMemory::create(layout.bytes)
                                  : SharedMemory::create_private(layout.bytes);
  Team team = layout.team(memory, s, settings);
  const std::vector<float> resumed_states = own_states_of(s, resume);
  const size_t workers = static_cast<size_t>(s.devices.topology.total_workers());
  std::optional<SharedMemory> notes;
  std::span<Trace> traces;
  if (!request.trace.empty()) {
    notes.emplace(SharedMemory::create(workers * sizeof(Trace)));
    traces = {reinterpret_cast<Trace*>(notes->data()), workers};
  }
  const Buffers buffers(memory.data() + layout.buffers, s.layout.buffers);
  fill(s, resume, buffers, generator);
  if (start) {
    begin(s, *start);
    if (request.begun) request.begun(start->folder());
  }
  const RunParts parts{.session = s,
                       .request = request,
                       .folder = start ? start->folder() : request.location.folder,
                       .resume = resume,
                       .buffers = buffers,
                       .generator = generator,
                       .gpus = {.open = request.open_gpu,
                                .shared = memory.data() + layout.gpus,
                                .stuck_s = stuck_gpu_s(s, request)},
                       .resumed_states = resumed_states,
                       .space_for_weights = start ? start->space_for_weights() : nullptr,
                       .traces = traces};
  if (s.devices.topology.ranks > 1 && has_status_line()) expect_status();  // of rank 0
  const auto body = [&](int rank) {
    const int per_rank = s.devices.topology.workers_per_rank();
    const int ended = run_one_rank(parts, team, rank, cores_from(cores, rank * per_rank, per_rank));
    if (s.devices.topology.ranks > 1 && ended == 0)
      flush_output();  // this rank's process ends here
    return ended;
  };
  LaunchSettings how;
  if (s.devices.on_gpu()) how.grace_ms = 5000;  // to abort communicators and free GPU memory
  const int code = launch(team, body, how);
  if (start) write_failure_of_lost_rank(start->folder(), team);
  if (code == static_cast<int>(Fault::rank) && start) print_resume_hint(start->folder(), resume);
  if (!traces.empty()) write_text(request.trace, chrome_trace(traces, s.devices.topology));
  return start ? code_of_end(code, start->folder(), true) : code;
}

}  // namespace

int run(const Session& s, const RunRequest& request) {
  check_memory(s);
  if (s.devices.on_gpu() && s.devices.exchange.backend == Exchange::Backend::nccl)
    request.hosts ? cuda::set_nccl_environment_of_hosts(request.hosts->interface())
                  : cuda::set_nccl_environment();
  Disk machines_own;
  Disk& disk = request.disk ? *request.disk : machines_own;
  return request.world && request.world->size > 1 ? run_given_rank(s, request, disk)
                                                  : run_own_ranks(s, request, disk);
}

void record(const Session& s, std::span<Trace> traces) {
  const SharedLayout layout(s);
  const CoreLease lease = lease_own_cores(s.devices, 1);
  const SharedMemory memory = SharedMemory::create_private(layout.bytes);
  const Team team = layout.team(memory, s, {});
  const Buffers buffers(memory.data() + layout.buffers, s.layout.buffers);
  Generator generator(static_cast<uint64_t>(s.settings.spec.seed));
  initialise(s.settings, s.devices, s.precision, s.model, buffers, generator);
  RankState state(s, buffers, team, 0, generator);
  run_workers(
      team, 0,
      [&](int worker) {
        train_worker(state, worker, {.trace = &traces[static_cast<size_t>(worker)]});
      },
      lease.cores());
}

Evaluation evaluate(const Session& s, const OpenGpu& open,
                    std::optional<std::span<const int>> cores) {
  check_memory(s);
  const SharedLayout layout(s);
  const CoreLease lease = cores ? CoreLease() : lease_own_cores(s.devices, 1);
  std::span<const int> pins = cores.value_or(lease.cores());
  if (pins.size() < static_cast<size_t>(s.devices.topology.total_workers())) pins = {};
  const SharedMemory memory = SharedMemory::create_private(layout.bytes);
  const Team team = layout.team(memory, s, {});
  const Buffers buffers(memory.data() + layout.buffers, s.layout.buffers);
  const GpuAccess gpus{.open = open, .shared = memory.data() + layout.gpus, .stuck_s = {}};
  Generator generator(static_cast<uint64_t>(s.settings.spec.seed));
  initialise(s.settings, s.devices, s.precision, s.model, buffers, generator);
  std::optional<PrefetchStream> prefetch;
  if (s.data.test->reader) prefetch.emplace(*s.data.test, *s.batches.test, s.devices.topology, 0);
  Evaluation out;
  run_workers(
      team, 0,
      [&](int worker) {
        const StepExecutor::Samples samples{.train = nullptr,
                                            .test = prefetch ? &*prefetch : nullptr};
        const Evaluation mine =
            s.devices.on_gpu()
                ? make_gpu_executor(s, buffers, team, worker, gpus, samples)->evaluate({})
                : Executor(s, buffers, team, worker, nullptr, samples).evaluate({});
        if (worker == 0) out = mine;
      },
      pins);
  return out;
}

}  // namespace dpt
