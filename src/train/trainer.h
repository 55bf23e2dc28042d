// The loop over epochs and steps that every worker runs. It does not depend on mode or device.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/generator.h"
#include "checkpoint/store.h"
#include "checkpoint/train_state.h"
#include "comm/team.h"
#include "data/sampler.h"
#include "engine/cpu/executor.h"
#include "engine/gpu/team.h"
#include "session/buffers.h"
#include "session/session.h"
#include "train/best_weights.h"
#include "train/reporter.h"

namespace dpt {

// What the workers of one rank share, besides the buffers that all ranks of the machine share.
struct RankState {
  RankState(const Session& session, const Buffers& buffers, Team team, int rank,
            const Generator& generator);

  const Session& session;
  Buffers buffers;
  Team team;
  int rank;  // in the team: among the ranks of this host
  // Among the ranks of all hosts.
  int number() const {
    const Topology& topology = session.devices.topology;
    return rank + static_cast<int>(topology.ranks_of_host(topology.host).begin);
  }
  Link* link = nullptr;  // to other hosts, on the first rank of each; null: one host
  int cores;             // that this process may use; workers are bound to one each later
  Generator generator;   // PyTorch's global one, after drawing the initial weights
  Generator drawn_by;    // the same, before it drew the last order
  Order order;           // of this epoch; the first worker writes it while the others wait
  std::unique_ptr<PrefetchStream> train, test;  // for data sets whose samples are made on demand
  GpuAccess gpus{};                             // for sessions on GPUs
  CheckpointStore* checkpoints = nullptr;       // null: none are written; the same on every rank
  BestWeights* best_weights = nullptr;          // null: not kept; the same on every rank
  const TrainState* resumed = nullptr;          // the state to resume; null: a new run
  // Optimizer states that workers keep for themselves, in the layout of Checkpoints::write().
  std::span<const float> resumed_states{};
};

struct Outcome {
  int64_t steps = 0;
  // The signal at which all workers agreed to stop, or kTimeLimitReached; 0: the run is complete.
  int stopped_by = 0;
  GradientScaler::State scaler{};  // for the next step
  int64_t epochs = 0;              // done
  BestValue best{}, early_stop{};  // of Evaluations
  bool stopped_early = false;      // by `early_stop`: the run is complete
};

// Receivers of a worker's steps while it trains. Null: not wanted.
struct WorkerObservers {
  Reporter* reporter = nullptr;    // of the first worker of rank 0 only
  PlanStepClock* clock = nullptr;  // of a run that is measured
  Trace* trace = nullptr;          // of a run that writes a timeline
};

// Trains to the end. Every worker of every rank calls it, each on its own thread. worker: its
// number in the team. Throws Error{diverged} on every worker, with step and layer, when a loss is
// not finite; nothing of that step is in the weights then.
Outcome train_worker(RankState& rank, int worker, const WorkerObservers& observers);

}  // namespace dpt
