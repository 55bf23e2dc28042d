#include "optim/gradient_scaler.h"

#include <cmath>

namespace dpt {

void GradientScaler::update(bool overflowed) {
  if (!settings_.on) return;
  if (overflowed) {
    // A float in torch, which keeps it there too.
    scale_ = static_cast<double>(static_cast<float>(scale_ * settings_.backoff_factor));
    tracker_ = 0;
    ++skipped_;
    ++in_a_row_;
    return;
  }
  in_a_row_ = 0;
  if (++tracker_ < settings_.growth_interval) return;
  tracker_ = 0;
  const auto grown = static_cast<float>(scale_ * settings_.growth_factor);
  if (std::isfinite(grown)) scale_ = static_cast<double>(grown);
}

}  // namespace dpt
