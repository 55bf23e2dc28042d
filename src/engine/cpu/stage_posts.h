// How the devices of a replica wait for each other's stages: each worker posts once for each
// operation that it has done, and waits for the count at which another worker has done one
// (Team::post). Worker w of every device of a replica has the same shards, so a worker only ever
// waits for one other worker at a time.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/cpu/worker.h"
#include "graph/program/plan.h"

namespace dpt {

// The number of posts of a device when it has done `op`, counted from the start of the pass. ops:
// the device's operations. REQUIRES: `op` is one of them.
uint32_t posts_until(const std::vector<StageOp>& ops, const StageOp& op);

// Thread: the worker's. REQUIRES: the worker outlives it.
class StagePosts {
 public:
  explicit StagePosts(CpuWorker& worker);

  void post() { worker_.team.post(worker_.team_number); }  // this worker has done an operation
  // In a training step: waits for the operation that the plan's step names.
  void wait_for(const PlanStep& step);
  void end_step();  // all operations of the schedule are done or waited for
  // In an evaluation: waits until a stage is done with a batch; nothing if the stage is this
  // device's.
  void wait_for_test(int stage, int64_t batch);
  void end_evaluation(int64_t batches);

 private:
  CpuWorker& worker_;
  std::vector<uint32_t> posted_;  // [devices of a replica] posts of each up to the current pass
};

}  // namespace dpt
