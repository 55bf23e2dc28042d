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
#include "checkpoint/model_file.h"
#include "checkpoint/store.h"
#include "comm/core_lease.h"
#include "comm/once_per_job.h"
#include "comm/watchdog.h"
#include "comm/workers.h"
#include "engine/gpu/executor.h"
#include "train/best_weights.h"
#include "train/final_evaluation.h"
#include "train/memory_estimate.h"
#include "train/run_folder.h"
#include "train/run_memory.h"
#include "train/trainer.h"

namespace dpt {

std::unique_ptr<cuda::DeviceApi> open_gpu(int index) { return cuda::cuda_module().open(index); }

double timeout_of(const Spec& spec) {
  const auto& mode = *static_cast<const ModeType*>(spec.parallel.what);
  const auto given = mode.timeout ? mode.timeout(spec.parallel.settings) : std::optional<double>{};
  return given.value_or(TeamSettings{}.timeout_s);
}

namespace {

// Leases a core for each worker of `ranks` ranks, so that no other run of dptrain uses it. The
// lease is empty (workers are not pinned) if there are too few cores, and on GPUs, where the
// threads that CUDA and NCCL start would be pinned too.
CoreLease lease_cores(const Devices& devices, int ranks) {
  const auto workers =
      static_cast<size_t>(ranks) * static_cast<size_t>(devices.topology.workers_per_rank());
  const Rows own = devices.topology.workers_of_host(devices.topology.host);
  if (devices.on_gpu() || static_cast<size_t>(own.count()) > usable_cores().size()) return {};
  return {allowed_cores(), workers};
}

struct RunCores {
  CoreLease lease;
  std::optional<OncePerJob> once;  // while it lives, other ranks of the job do not warn
};

// Leases the cores of `ranks` ranks, and warns if other runs leave too few. job: World::job of
// ranks that a launcher started; empty: this process starts them all.
RunCores lease_run_cores(const Devices& devices, int ranks, std::string_view job = {}) {
  RunCores out{.lease = lease_cores(devices, ranks), .once = {}};
  if (out.lease.taken() == 0 || !out.lease.cores().empty()) return out;
  if (!job.empty() && !out.once.emplace(job, "cores").speaks()) return out;
  const Rows workers = devices.topology.workers_of_host(devices.topology.host);
  print_stderr(
      "other runs of dptrain use {} of the {} cores, which leaves too few for the {} of this run: "
      "it shares cores with them, and all of them slow down; use fewer with cores=N, or wait for "
      "another run to end\n",
      out.lease.taken(), allowed_cores().size(), counted(workers.count(), "worker"));
  return out;
}

// The cores of one rank, whose first worker uses number `first` of the list.
std::vector<int> cores_from(std::span<const int> cores, int first, int workers) {
  const auto begin = static_cast<size_t>(first), count = static_cast<size_t>(workers);
  if (begin + count > cores.size()) return {};
  return {cores.begin() + first, cores.begin() + first + workers};
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
  Disk& disk;
  const RunMemory& memory;
  std::optional<RunStart>& start;  // empty: the run is measured, or has not begun
  std::span<Trace> traces{};
  Link* link = nullptr;  // to other hosts, on the leader of each
  std::optional<Generator> generator{};
  std::vector<float> resumed_states{};

  const std::optional<Resume>& resume() const {
    static const std::optional<Resume> none;
    return start ? start->resume() : none;
  }
  const std::string& folder() const { return start ? start->folder() : request.location.folder; }
};

std::optional<TensorBoardLog::Start> resumed_at(const std::optional<Resume>& resume) {
  if (!resume) return {};
  return TensorBoardLog::Start{.step = resume->state.step, .of_epoch = resume->state.of_epoch};
}

// Seconds without progress after which a GPU counts as stuck.
double stuck_gpu_s(const Session& s, const RunRequest& request) {
  return std::max(request.stuck_gpu_s, timeout_of(s.settings.spec));
}

// Saves the weights, the result of the run: if the disk is full, old checkpoints are removed first.
void save_weights(const RunParts& parts, const Outcome& outcome, CheckpointStore& checkpoints) {
  const Session& s = parts.session;
  const Buffers& buffers = parts.memory.buffers();
  if (ReservedSpace* const space = parts.start->space_for_weights()) space->release();
  const std::string path = model_file(parts.folder());
  check_finite(s.model, buffers, outcome.epochs, outcome.steps);
  try {
    checkpoints.retry_with_space(
        path, [&] { save_model(s.precision, s.model, buffers, outcome.scaler, path, parts.disk); });
  } catch (const Error& e) {
    if (checkpoints.newest().empty()) throw;
    fail(e.fault(), "{}; then resume from the newest checkpoint with --resume {}", e.what(),
         checkpoints.newest());
  }
  std::remove(previous_model_file(parts.folder()).c_str());
}

// What the run gives a rank.
void equip(RankState& state, const RunParts& parts) {
  state.gpus = {.open = parts.request.open_gpu,
                .shared = parts.memory.gpus(),
                .stuck_s = stuck_gpu_s(parts.session, parts.request),
                .link = parts.link};
  if (parts.link)
    state.gpus.broadcast = [&](std::span<std::byte> id) { parts.request.hosts->broadcast(id); };
  state.link = parts.link;
  if (parts.resume()) state.resumed = &parts.resume()->state;
  state.resumed_states = parts.resumed_states;
}

// A rank, in a process of its own or in this one.
class OneRank {
 public:
  OneRank(const RunParts& parts, int rank)
      : parts_(parts),
        s_(parts.session),
        probe_(parts.request.probe),
        rank_(rank),
        team_(parts.memory.team()),
        state_(s_, parts.memory.buffers(), team_, rank, *parts.generator),
        checkpoints_(s_, parts.folder(), parts.request.location.resolved_spec,
                     parts.resume() ? parts.resume()->path : "", parts.disk),
        best_weights_(s_, parts.folder(), checkpoints_, parts.disk) {
    equip(state_, parts);
    if (is_first() && !probe_)
      reporter_ = std::make_unique<Reporter>(
          s_, parts.folder(),
          Reporter::Settings{.resumed = resumed_at(parts.resume()),
                             .run_id = parts.request.identity.id,
                             .log_interval_s = parts.request.log_interval_s,
                             .cpus = parts.request.cpus,
                             .disk = &parts.disk});
    if (!probe_ && s_.settings.spec.save.on) state_.checkpoints = &checkpoints_;
    if (!probe_) state_.best_weights = &best_weights_;
    // A call into the GPU driver may block forever, even while a run ends.
    if (s_.devices.on_gpu()) watchdog_.emplace(team_, rank, parts.request.watchdog_s);
  }

  // Returns the rank's exit code.
  int run(std::span<const int> cores) {
    try {
      run_workers(
          team_, rank_, [&](int worker) { train(worker); }, cores);
      if (reporter_ && s_.data.final_test && !outcome_.stopped_by)
        evaluate_final_test(s_, parts_.folder(), outcome_, *reporter_, parts_.request.open_gpu,
                            cores);
    } catch (const Error& e) {
      if (reporter_)  // the exit code is of the rank that failed first
        write_failure(parts_.folder(),
                      team_.broken() ? team_.exit_code() : static_cast<int>(e.fault()), e.report());
      throw;
    }
    if (reporter_)
      reporter_->end({.stopped_by = outcome_.stopped_by,
                      .checkpoint = checkpoints_.newest(),
                      .best = outcome_.best,
                      .early_stop = outcome_.early_stop,
                      .stopped_early = outcome_.stopped_early});
    return outcome_.stopped_by ? exit_code_of(outcome_.stopped_by) : 0;
  }

 private:
  // The first rank of the first host writes the run directory and prints the results.
  bool is_first() const { return state_.number() == 0; }

  void train(int worker) {
    const bool first = worker == rank_ * s_.devices.topology.workers_per_rank();
    const auto at = static_cast<size_t>(worker);
    const WorkerObservers observers{.reporter = first ? reporter_.get() : nullptr,
                                    .clock = probe_ ? &probe_->clocks[at] : nullptr,
                                    .trace = parts_.traces.empty() ? nullptr : &parts_.traces[at]};
    // Rank 0 has filled the weights, which GPUs copy first of all.
    team_.barrier_without_limit(worker);
    const Outcome mine = train_worker(state_, worker, observers);
    if (first) {
      outcome_ = mine;
      if (reporter_) reporter_->settle();
      if (probe_) probe_->last(rank_);
      if (is_first() && !probe_) save(worker);
      // No host reports success before the first one has saved.
      if (rank_ == 0 && parts_.request.hosts) parts_.request.hosts->confirm_saved();
    }
    // Print in the order of the ranks.
    for (int r = 0; r < team_.shape().ranks; ++r) {
      if (first && r == rank_ && !mine.stopped_by && !probe_)
        print_stdout("Training on {} {} finished.\n", s_.devices.on_gpu() ? "GPU" : "CPU",
                     state_.number());
      team_.barrier_without_limit(worker);  // waits while the first worker saves
    }
  }

  void save(int worker) {
    Progress saving = team_.progress(rank_);
    saving.phase = Phase::saving;
    team_.set_progress(worker, saving);
    save_weights(parts_, outcome_, checkpoints_);
    if (!outcome_.stopped_by) checkpoints_.finish();
  }

  const RunParts& parts_;
  const Session& s_;
  const Probe* probe_;
  int rank_;
  Team team_;
  RankState state_;
  CheckpointStore checkpoints_;
  BestWeights best_weights_;
  std::unique_ptr<Reporter> reporter_;
  std::optional<Watchdog> watchdog_;
  Outcome outcome_;
};

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

// How a rank begins that a launcher started: the leader of its host connects it to the others, and
// host 0, then the leader, tells how the run starts.
void join_run(RunParts& parts, int rank) {
  const Session& s = parts.session;
  const RunLocation& location = parts.request.location;
  RunHosts* const hosts = parts.request.hosts;
  if (rank != 0) {
    parts.start.emplace(s, location, parts.memory.decision(), parts.memory.team(), parts.disk);
    return;
  }
  if (hosts) {
    hosts->watch(parts.memory.team());
    hosts->compare(s.data);
    // GPUs may be busy for as long as a host waits for its own.
    parts.link = &hosts->connect(s.devices.on_gpu() ? std::optional(stuck_gpu_s(s, parts.request))
                                                    : std::nullopt);
  }
  if (!hosts || hosts->host() == 0) parts.start.emplace(s, location, parts.disk);
  if (hosts) {
    const std::string text = hosts->from_first(parts.start ? parts.start->text() : std::string());
    if (!parts.start) parts.start.emplace(s, location, text, parts.disk);
  }
  parts.start->write(parts.memory.decision());
}

// Fills the memory. Then rank 0 of the first host begins to write the run directory.
void begin(RunParts& parts, int rank) {
  const Session& s = parts.session;
  const std::optional<Resume>& resume = parts.resume();
  if (resume && s.devices.own_states())
    parts.resumed_states = restore_own_states(s.settings, s.model, *resume);
  parts.generator = parts.memory.fill(resume);
  if (!parts.start || rank != 0 || s.devices.topology.host != 0) return;
  parts.start->begin();
  if (!resume) print_stderr("{}", partial_weights_text(s.settings, s.model));
  if (parts.request.begun) parts.request.begun(parts.folder());
}

// Reports the loss of a rank and how to go on, and writes the trace. rank: the one of this process,
// if a launcher started it. Returns the exit code.
int end_run(const RunParts& parts, std::optional<int> rank, int code) {
  if (!parts.start || parts.session.devices.topology.host != 0) return code;
  const Team team = parts.memory.team();
  const bool lost = code == static_cast<int>(Fault::rank);
  // Of ranks that a launcher started, the lowest one that is left speaks, if they had begun.
  const bool speaks =
      !rank || (*rank == (team.broken_by() == 0 ? 1 : 0) && team.progress(0).epoch > 0);
  if (speaks && (lost || !rank)) write_failure_of_lost_rank(parts.folder(), team);
  if (speaks && lost) print_resume_hint(parts.folder(), parts.resume());
  if (!parts.traces.empty())
    write_text(parts.request.trace, chrome_trace(parts.traces, parts.session.devices.topology));
  return code_of_end(code, parts.folder(), rank.value_or(0) == 0);
}

}  // namespace

int run(const Session& s, const RunRequest& request) {
  check_memory(s);
  RunHosts* const hosts = request.hosts;
  if (s.devices.on_gpu() && s.devices.exchange.backend == Exchange::Backend::nccl)
    hosts ? cuda::set_nccl_environment_of_hosts(hosts->interface()) : cuda::set_nccl_environment();
  Disk machines_own;
  Disk& disk = request.disk ? *request.disk : machines_own;
  const bool joins = request.world && request.world->size > 1;  // a launcher started this rank
  const World world = hosts ? hosts->local() : request.world.value_or(World());
  if (hosts) hosts->load(link_backend(s.devices.exchange));
  std::optional<RunStart> start;
  if (!joins && !request.probe) start.emplace(s, request.location, disk);
  const int ranks = s.devices.topology.ranks, workers = s.devices.topology.workers_per_rank();
  RunCores leased;
  if (!request.probe)
    leased = joins ? lease_run_cores(s.devices, 1, world.job) : lease_run_cores(s.devices, ranks);
  const std::span<const int> cores =
      request.probe ? request.probe->cores : std::span<const int>(leased.lease.cores());
  const TeamSettings settings = team_settings(s, request, leased.lease);
  const std::string spec = request.location.resolved_spec + request.location.resume;
  RunMemory memory = joins ? RunMemory(s, settings, world, spec) : RunMemory(s, settings);
  RunParts parts{.session = s, .request = request, .disk = disk, .memory = memory, .start = start};
  if (!joins && !request.trace.empty()) parts.traces = memory.make_traces();
  if (!joins) begin(parts, 0);
  const auto body = [&](int rank) {
    if (joins) {  // here, where the heartbeat goes on, and other ranks learn of a failure
      join_run(parts, rank);
      begin(parts, rank);
    }
    return OneRank(parts, rank).run(cores_from(cores, joins ? 0 : rank * workers, workers));
  };
  const int code = memory.run_ranks(body, [&] {
    if (hosts) hosts->end(!memory.team().broken());
  });
  return end_run(parts, joins ? std::optional(world.rank) : std::nullopt, code);
}

Evaluation evaluate(const Session& s, const OpenGpu& open,
                    std::optional<std::span<const int>> cores) {
  check_memory(s);
  const RunCores leased = cores ? RunCores() : lease_run_cores(s.devices, 1);
  std::span<const int> pins = cores.value_or(leased.lease.cores());
  if (pins.size() < static_cast<size_t>(s.devices.topology.total_workers())) pins = {};
  const RunMemory memory(s);
  const Team team = memory.team();
  const Buffers& buffers = memory.buffers();
  const GpuAccess gpus{.open = open, .shared = memory.gpus(), .stuck_s = {}};
  memory.fill();
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
