// The gradient noise scale: tr(Sigma) / |G|^2, where G is the true gradient and Sigma the
// covariance of the gradients of single samples (McCandlish et al., "An Empirical Model of
// Large-Batch Training", 2018, appendix A.1). Batches much smaller than it train almost as well per
// sample as single samples; a batch much larger trains hardly better per step.
#pragma once

#include <limits>
#include <vector>

#include "engine/step_executor.h"

namespace dpt {

class NoiseScale {
 public:
  // Adds a measured step. Ignores steps whose gradients are not finite, are all 0, or come from
  // fewer than two shards with samples.
  void add(const GradientMeasures& measured);
  // NaN before the first step, and while the estimate of |G|^2 is not positive.
  double value() const;

  // For checkpoints; empty: nothing was measured.
  std::vector<double> state() const;
  void restore(const std::vector<double>& state);

 private:
  // Weight of the newest step. Both estimates are noisy, so they are averaged before the division.
  static constexpr double kNewest = 0.1;
  bool begun_ = false;
  double trace_ = 0, square_ = 0;  // exponential averages of the estimates of tr(Sigma) and |G|^2
};

}  // namespace dpt
