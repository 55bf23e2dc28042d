// A whole run of a session: memory, ranks and workers, from the first weights to the files that
// stay.
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
#include "train/run_identity.h"
#include "train/run_start.h"

namespace dpt {

// By its number among those that CUDA shows.
std::unique_ptr<cuda::DeviceApi> open_gpu(int index);

// A run that is measured: all of it but what it prints and writes.
struct Probe {
  std::span<StageClock> clocks;        // one for each worker, in memory that the ranks share
  std::function<void(int rank)> last;  // by each rank after its last step, before any of them ends
  std::span<const int> cores{};        // one for each worker; empty: they are not pinned
};

struct RunRequest {
  RunPlace place;  // where it is written, and what it continues
  RunIdentity identity = make_run_identity();
  std::optional<World> world;  // given by whoever started this rank; empty: dptrain starts its own
  const Probe* probe = nullptr;  // then nothing is printed and nothing is written
  std::string trace;  // a file for what workers did (engine/trace.h); empty: it is not asked for.
                      // REQUIRES: no world
  OpenGpu open_gpu = dpt::open_gpu;  // where the session is on a GPU
  Disk* disk = nullptr;              // that checkpoints are written to; null: the machine's
  double log_interval_s = 60;        // see ProgressDisplay
  double stuck_gpu_s = 600;          // see GpuAccess::stuck_s; at least the mode's `timeout`
  double watchdog_s = 10;            // see Watchdog; of runs on GPUs
};

// Returns the exit code: 0 done, 1 to 7 as Fault, 130 and 143 after Ctrl-C and SIGTERM (the weights
// so far are saved then). REQUIRES: called from a process of one thread. Throws Error.
int run(const Session& session, const RunRequest& request);

// Trains in this process, writes no file, and leaves what workers did in `traces`, one for each.
// REQUIRES: a session of one rank; zeroed memory.
void record(const Session& session, std::span<Trace> traces);

// Loss and accuracy of spec.initial_weights on the test set, by the workers of one process.
// REQUIRES: session.test; a mode of one process.
Evaluation evaluate(const Session& session, const OpenGpu& open = open_gpu);

}  // namespace dpt
