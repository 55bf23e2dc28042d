#include "optim/gradient_scaler.h"

#include "graph/formulas/scaler.h"

namespace dpt {

void GradientScaler::update(bool overflowed) {
  if (!settings_.on) return;
  skipped_ += overflowed;
  in_a_row_ = overflowed ? in_a_row_ + 1 : 0;
  formula::update_scale(
      {settings_.growth_factor, settings_.backoff_factor, settings_.growth_interval}, overflowed,
      scale_, tracker_);
}

}  // namespace dpt
