// How the scale of a loss goes on after a step: torch.amp.GradScaler's rules
// (aten/src/ATen/native/cuda/AmpKernels.cu, amp_update_scale), one for CPUs and GPUs.
#pragma once

#include <stdint.h>

#include "graph/formulas/formulas.h"

namespace dpt::formula {

struct ScaleRule {
  double growth_factor, backoff_factor;
  int64_t growth_interval;  // steps without overflow until it grows
};

// The scale is a float in torch; one that would not be finite does not grow.
DPT_FORMULA void update_scale(const ScaleRule& rule, bool overflowed, double& scale,
                              int64_t& growth_tracker) {
  if (!overflowed && ++growth_tracker < rule.growth_interval) return;
  growth_tracker = 0;
  const auto next =
      static_cast<float>(scale * (overflowed ? rule.backoff_factor : rule.growth_factor));
  if (overflowed || next - next == 0) scale = static_cast<double>(next);
}

}  // namespace dpt::formula
