// The bytes that each CPU worker, or each GPU, moves in a training step, derived from the plan's
// instructions: what `dptrain plan` prints as a table.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "session/session.h"

namespace dpt {

struct Traffic {
  // CPU workers: of memory that another worker's part of the step lies in. Each byte counts once
  // per instruction, and not if the instruction has written it itself; weights that others update
  // count once per step.
  uint64_t read = 0, written = 0;
  // GPUs: to and from other GPUs. Collectives count as rings: all_reduce of b bytes over n GPUs
  // takes 2 b (n - 1) / n, reduce_scatter and all_gather half of that.
  uint64_t sent = 0, received = 0;
  uint64_t to_host = 0, from_host = 0;  // GPUs: copies

  Traffic& operator+=(const Traffic& other);
  bool operator==(const Traffic&) const = default;
};

// What the plan's instructions of one name move; "weights": the updated weights that others made.
struct TrafficLine {
  std::string name;
  Traffic bytes;
  bool operator==(const TrafficLine&) const = default;
};
using WorkerTraffic = std::vector<TrafficLine>;
Traffic total(const WorkerTraffic& lines);

// For each worker, the instructions that move anything in a step with a full batch that is not
// recorded for `log`. Without the samples that are read, and the numbers of a step that hosts of
// GPUs send and collect: learning rates, and the report of the loss.
std::vector<WorkerTraffic> traffic_of(const Session& session);

// The table of `dptrain plan`; empty if nothing is moved.
std::string traffic_text(const Session& session);

// One worker of CPUs, or one GPU: traffic_of() calls them.
WorkerTraffic cpu_traffic(const Session& session, int worker);
WorkerTraffic gpu_traffic(const Session& session, int worker);

}  // namespace dpt
