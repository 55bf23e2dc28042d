// cosine_annealing_warm_restarts: eta_min + (lr - eta_min) * (1 + cos(pi * T_cur / T_i)) / 2, where
// T_cur counts from the last restart and T_i is the length of the period, as PyTorch's
// CosineAnnealingWarmRestarts (Loshchilov and Hutter, 2017).
#include <cmath>
#include <numbers>

#include "optim/schedules/closed_form.h"

namespace dpt::schedules {
namespace {

struct WarmRestarts {
  static constexpr Usage kUsage{
      "torch.optim.lr_scheduler.CosineAnnealingWarmRestarts",
      "schedule: {cosine_annealing_warm_restarts: 10}\n"
      "schedule: {cosine_annealing_warm_restarts: {T_0: 10, T_mult: 2, eta_min: 0.0001}}"};

  int64_t t_0 = 0;
  int64_t t_mult = 1;
  double eta_min = 0;

  static KeyTable<WarmRestarts> keys() {
    return KeyTable<WarmRestarts>()
        .required("T_0", &WarmRestarts::t_0, "number of intervals until the first restart",
                  kPositive)
        .optional("T_mult", &WarmRestarts::t_mult,
                  "how many times longer each period is than the one before", kPositive)
        .optional("eta_min", &WarmRestarts::eta_min, "smallest learning rate", kNotNegative);
  }

  double lr(double base, int64_t k, int64_t) const {
    auto period = static_cast<double>(t_0);
    auto current = static_cast<double>(k);
    if (t_mult == 1) {
      current = static_cast<double>(k % t_0);
    } else {
      while (current >= period) {
        current -= period;
        period *= static_cast<double>(t_mult);
      }
    }
    return eta_min + (base - eta_min) * (1 + std::cos(std::numbers::pi * current / period)) / 2;
  }
};

}  // namespace

ScheduleType cosine_annealing_warm_restarts() {
  return closed_form<WarmRestarts>(
      "cosine_annealing_warm_restarts",
      "Lowers the learning rate to eta_min along half a cosine, again and again.");
}

}  // namespace dpt::schedules
