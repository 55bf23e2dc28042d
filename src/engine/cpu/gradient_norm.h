// The norm of a step's gradients, and what follows from it: whether they overflowed, and how
// clipping scales them.
#pragma once

#include "engine/cpu/gradient_meter.h"
#include "engine/cpu/shard_gradients.h"
#include "engine/cpu/worker.h"
#include "engine/step_executor.h"

namespace dpt {

// How the update uses the gradients of a step.
struct GradientDecision {
  double norm = 0;          // before clipping, without the loss scale
  bool overflowed = false;  // with a loss scale: not finite, so nothing is updated
  double clip_scale = 1;    // factor of clip_grad_norm
};
// scaled: the run has a loss scale.
GradientDecision decide(const ClipSpec& clip, bool scaled, double norm);

// Thread: the worker's. REQUIRES: all references outlive it.
class GradientNorm {
 public:
  GradientNorm(const CpuWorker& worker, ShardGradients& gradients, const GradientMeter& meter)
      : worker_(worker), gradients_(gradients), meter_(meter) {}

  void begin_step() { summed_ = false; }
  // Sums this worker's part of the gradients over shards and writes its norm partials to
  // Buffers::squares(). They cover chunks of a fixed size, so the norm's bits do not depend on the
  // number of workers.
  void sum(const StepInput& input);
  // After a barrier behind sum(): the same on every worker. Without sum(): no norm, no clipping.
  GradientDecision decide(const StepInput& input) const;

 private:
  void sum_share();

  const CpuWorker& worker_;
  ShardGradients& gradients_;
  const GradientMeter& meter_;
  bool summed_ = false;
};

}  // namespace dpt
