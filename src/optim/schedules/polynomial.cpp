// polynomial: lr * (1 - k / total_iters)^power, and 0 from interval total_iters on, as PyTorch's
// PolynomialLR.
#include <algorithm>
#include <cmath>

#include "optim/schedules/closed_form.h"

namespace dpt::schedules {
namespace {

struct Polynomial {
  static constexpr Usage kUsage{"torch.optim.lr_scheduler.PolynomialLR",
                                "schedule: {polynomial: {total_iters: 90, power: 2}}"};

  int64_t total_iters = 5;
  double power = 1;

  static KeyTable<Polynomial> keys() {
    return KeyTable<Polynomial>()
        .optional("total_iters", &Polynomial::total_iters,
                  "number of intervals until the learning rate is 0", kPositive)
        .optional("power", &Polynomial::power, "power of the remaining share of total_iters",
                  kNotNegative);
  }

  double lr(double base, int64_t k, int64_t) const {
    const auto done = static_cast<double>(std::min(k, total_iters));
    return base * std::pow(1 - done / static_cast<double>(total_iters), power);
  }
};

}  // namespace

ScheduleType polynomial() {
  return closed_form<Polynomial>(
      "polynomial", "Lowers the learning rate to 0 as a power of the remaining share.");
}

}  // namespace dpt::schedules
