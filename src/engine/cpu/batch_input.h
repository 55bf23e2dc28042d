// What a shard group's memory receives before its programs run: samples, targets, and the kernels'
// step context.
#pragma once

#include <cstddef>
#include <cstdint>

#include "data/batch_loader.h"
#include "engine/cpu/binding.h"
#include "engine/cpu/worker.h"
#include "engine/prefetch_stream.h"
#include "engine/shard_samples.h"
#include "engine/step_executor.h"

namespace dpt {

// Reads one data set. Thread: the worker's. REQUIRES: all references outlive it.
class CpuBatchInput {
 public:
  // prefetch: the rank's prefetched samples; null: the worker reads the samples itself.
  CpuBatchInput(CpuWorker& worker, const BatchLoader& loader, PrefetchStream* prefetch)
      : worker_(worker), loader_(loader), prefetch_(prefetch) {}

  // Everything that the worker's stages need for a micro-batch of a training step. again: the step
  // was loaded before, so its prefetched samples are gone.
  void load(Binding& b, int group, const StepInput& input, size_t micro, bool again = false);

  // The parts of load(). inputs_timed(): counts as a wait for data.
  void set_context(Binding& b, int group, const StepInput& input, size_t micro) const;
  void inputs_timed(Binding& b, int group, const StepInput& input, size_t micro,
                    bool again = false);
  void inputs(Binding& b, int group, const StepInput& input, size_t micro, bool again = false);
  // has_inputs: inputs() was called for the same samples, so targets that are inputs are copied,
  // not made again.
  void targets(Binding& b, int group, const StepInput& input, size_t micro,
               bool has_inputs = false) const;

 private:
  DrawnSamples samples(int group, const StepInput& input, size_t micro) const {
    return samples_of(input.rows->micro[micro], worker_.shards(group), input.order);
  }

  CpuWorker& worker_;
  const BatchLoader& loader_;
  PrefetchStream* prefetch_;
};

}  // namespace dpt
