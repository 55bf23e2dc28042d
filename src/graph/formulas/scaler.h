// The loss scale's update after a step, with the rules of torch.amp.GradScaler (amp_update_scale in
// aten/src/ATen/native/cuda/AmpKernels.cu), for CPUs and GPUs.
#pragma once

#include <stdint.h>

#include "graph/formulas/formulas.h"

namespace dpt::formula {

struct ScaleRule {
  double growth_factor, backoff_factor;
  int64_t growth_interval;  // consecutive steps without overflow before the scale grows
};

// As in PyTorch, the scale is rounded to float and does not grow beyond the largest finite float.
DPT_FORMULA void update_scale(const ScaleRule& rule, bool overflowed, double& scale,
                              int64_t& growth_tracker) {
  if (!overflowed && ++growth_tracker < rule.growth_interval) return;
  growth_tracker = 0;
  const auto next =
      static_cast<float>(scale * (overflowed ? rule.backoff_factor : rule.growth_factor));
  if (overflowed || next - next == 0) scale = static_cast<double>(next);
}

}  // namespace dpt::formula
