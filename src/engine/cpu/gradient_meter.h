// What `log.grad_norms` and `log.noise_scale` measure of a step's gradients. Workers sum squares
// over chunks of fixed sizes; the first worker adds the chunks up after the step.
#pragma once

#include <cstddef>

#include "engine/cpu/worker.h"
#include "engine/step_executor.h"
#include "session/measure_layout.h"

namespace dpt {

// Thread: the worker's. REQUIRES: the worker outlives it.
class GradientMeter {
 public:
  explicit GradientMeter(const CpuWorker& worker)
      : worker_(worker), layout_(worker.session.layout.measures) {}

  // With `log.noise_scale`: sums the squares of chunks [first, last), of each shard's gradients
  // before they are summed, and of their sum.
  void measure_shards(size_t first, size_t last) const;
  void measure_total(size_t first, size_t last) const;
  // With `log.grad_norms`: measures this worker's part of the chunks of all parameters. REQUIRES:
  // the first shard's buffer has the sum over shards, and no worker writes it any more.
  void measure_parameters() const;
  // The measures of a step whose loss was divided by `divisor`, when all workers have measured.
  GradientMeasures measures(const StepInput& input, double divisor) const;

 private:
  void measure_chunks(const float* gradients, size_t row, size_t first, size_t last) const;
  double part_of_batch(const StepInput& input, size_t shard, double divisor) const;

  const CpuWorker& worker_;
  const MeasureLayout& layout_;
};

}  // namespace dpt
