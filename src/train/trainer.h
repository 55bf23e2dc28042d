// The loop over epochs and steps, as every worker runs it: it knows no mode and no device.
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
#include "train/reporter.h"

namespace dpt {

// What the workers of one rank share beside the buffers of all.
struct RankState {
  RankState(const Session& session, const Buffers& buffers, Team team, int rank,
            const Generator& generator);

  const Session& session;
  Buffers buffers;
  Team team;
  int rank;
  Generator generator;  // torch's global one, after it has drawn the initial weights
  Generator drawn_by;   // the same, before it drew the last order
  Order order;          // of this epoch; written by the first worker while the others wait
  std::unique_ptr<Ahead> train, test;       // where samples are made on the way
  GpuAccess gpus{};                         // where the session is on GPUs
  Checkpoints* checkpoints = nullptr;       // null: none are written. The same on every rank
  const TrainState* resumed = nullptr;      // where it goes on; null: it begins
  std::span<const float> resumed_states{};  // that workers keep for themselves, as Checkpoints
                                            // writes them
};

struct Outcome {
  int64_t steps = 0;
  int stopped_by = 0;              // the signal that all agreed to stop at; 0: the run is complete
  GradientScaler::State scaler{};  // for the next step
};

// Trains to the end. Every worker of every rank calls it, each on its own thread. `reporter` is
// null but for the first worker of rank 0. Throws Error{diverged} on every worker, with step and
// layer, when a loss is not finite; nothing of that step is in the weights then. `clock` is null
// but in a run that is measured.
Outcome train_worker(RankState& rank, int worker, Reporter* reporter, StageClock* clock = nullptr,
                     Trace* trace = nullptr);

}  // namespace dpt
