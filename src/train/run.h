// Runs a session: sets up memory, ranks and workers, trains, and writes the final files.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/disk.h"
#include "comm/rendezvous.h"
#include "engine/cpu/executor.h"
#include "engine/gpu/team.h"
#include "session/buffers.h"
#include "session/session.h"
#include "train/run_hosts.h"
#include "train/run_identity.h"
#include "train/run_start.h"

namespace dpt {

// Opens GPU `index`, as CUDA numbers visible devices.
std::unique_ptr<cuda::DeviceApi> open_gpu(int index);

// Seconds after which a silent rank counts as lost, and that ranks and hosts wait for each other at
// the start: the mode's `timeout`, or its default.
double timeout_of(const Spec& spec);

// Measures a run, which then prints and writes nothing.
struct Probe {
  std::span<PlanStepClock> clocks;     // one per worker, in memory shared by the ranks
  std::function<void(int rank)> last;  // called by ranks after the last step, before any ends
  std::span<const int> cores{};        // one per worker; empty: workers are not pinned
};

struct RunRequest {
  RunLocation location;  // its directory, and what it continues
  RunIdentity identity = make_run_identity();
  // Set if a launcher started this rank; empty: dptrain starts the ranks.
  std::optional<World> world;
  RunHosts* hosts = nullptr;     // the hosts of `world`; null: there is one
  int cpus = 0;                  // cores that all ranks of this machine may use; 0: not known
  const Probe* probe = nullptr;  // not null: nothing is printed or written
  // Path for a record of what workers did (engine/trace.h); empty: none. REQUIRES: no `world`.
  std::string trace;
  // Called on rank 0 with the run directory when the run has taken it over; null: not wanted. Must
  // not throw. In a run whose ranks dptrain starts, called before they are forked.
  std::function<void(const std::string& folder)> begun{};
  OpenGpu open_gpu = dpt::open_gpu;  // for sessions on GPUs
  Disk* disk = nullptr;              // for checkpoints and weights; null: the real disk
  double log_interval_s = 60;        // see ProgressDisplay
  double stuck_gpu_s = 600;          // see GpuAccess::stuck_s; at least the mode's `timeout`
  double watchdog_s = 10;            // see Watchdog; for runs on GPUs
};

// Runs the session. Returns the exit code: 0 done or stopped by `minutes`, 1 to 7 as in Fault, 130
// and 143 after Ctrl-C and SIGTERM, for which the weights are saved first. Throws Error. REQUIRES:
// called from a single-threaded process.
int run(const Session& session, const RunRequest& request);

// Loss and metrics of spec.initial_weights on the evaluated set, computed by the workers of this
// process. cores: those of the run that this process belongs to, which has leased them; without a
// value, cores are leased here. REQUIRES: session.data.test; a mode with one process.
Evaluation evaluate(const Session& session, const OpenGpu& open = open_gpu,
                    std::optional<std::span<const int>> cores = {});

}  // namespace dpt
