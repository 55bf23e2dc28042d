// The loss of a training step: its divisor, the loss of each shard, and their sums. The shards'
// numbers lie in Buffers::result(), where every worker reads them behind a barrier.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/cpu/batch_input.h"
#include "engine/cpu/binding_table.h"
#include "engine/cpu/worker.h"
#include "engine/step_executor.h"
#include "engine/step_numbers.h"

namespace dpt {

// Thread: the worker's. REQUIRES: all references outlive it.
class ShardLosses {
 public:
  ShardLosses(const CpuWorker& worker, const BindingTable& bindings, const CpuBatchInput& input);

  // samples: samples_of_update() of the step.
  void begin_step(int64_t samples) { divisor_ = natural_divisor(worker_.session.model, samples); }
  // The samples of this step that the worker's update counts: of all replicas, or of its own if
  // replicas own their weights.
  int64_t samples_of_update(const StepRows& rows) const;
  // If the targets determine the divisor: loads the group's targets and records its part of the
  // divisor.
  void prologue(int group, size_t micro, const StepInput& input) const;
  // Sums these parts over the shards that its update sums.
  void sum_divisor(uint64_t step);
  // What the loss divides by. Valid after sum_divisor(), or from the start of the step.
  double divisor() const { return divisor_; }
  // Runs the loss of the group's rows and records its sum.
  void run(int group, size_t micro, const StepInput& input) const;
  // The sums over all shards, in the fixed tree: the same bits on every worker. If replicas own
  // their weights, each divides by its own divisor, and the loss is the mean over all of them.
  StepSums sums(uint64_t step);

 private:
  double sum(double ShardResult::*field, uint64_t step, Rows shards);
  StepSums sums_of_replicas(uint64_t step);

  const CpuWorker& worker_;
  const BindingTable& bindings_;
  const CpuBatchInput& input_;
  double divisor_ = 1;
  std::vector<double> values_;  // [shards] scratch of sum()
  std::vector<double*> parts_;
};

}  // namespace dpt
