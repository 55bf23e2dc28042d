// The loop over epochs and steps, as every worker runs it: it knows no mode and no device.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/generator.h"
#include "comm/team.h"
#include "data/sampler.h"
#include "train/buffers.h"
#include "train/device_team.h"
#include "train/executor.h"
#include "train/reporter.h"
#include "train/session.h"

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
  Order order;          // of this epoch; written by the first worker while the others wait
  std::unique_ptr<Ahead> train, test;  // where samples are made on the way
  GpuAccess gpus{};                    // where the session is on GPUs
};

struct Outcome {
  int64_t steps = 0;
  int stopped_by = 0;          // the signal that all agreed to stop at; 0: the run is complete
  double scale = 1;            // of the loss, for the next step
  int64_t growth_tracker = 0;  // steps since the scale changed
};

// Trains to the end. Every worker of every rank calls it, each on its own thread. `reporter` is
// null but for the first worker of rank 0. Throws Error{diverged} on every worker, with step and
// layer, when a loss is not finite; nothing of that step is in the weights then. `clock` is null
// but in a run that is measured.
Outcome train_worker(RankState& rank, int worker, Reporter* reporter, StageClock* clock = nullptr,
                     Trace* trace = nullptr);

}  // namespace dpt
