// fading: lr * gamma^k.
#include <cmath>

#include "optim/schedules/closed_form.h"

namespace dpt::schedules {
namespace {

struct Fading {
  static constexpr Usage kUsage{"torch.optim.lr_scheduler.ExponentialLR", "schedule: fading"};
  double gamma = 0.8;
  static KeyTable<Fading> keys() {
    return KeyTable<Fading>().optional("gamma", &Fading::gamma, "factor of each interval");
  }
  double lr(double base, int64_t k, int64_t) const {
    return base * std::pow(gamma, static_cast<double>(k));
  }
};

}  // namespace

ScheduleType fading() {
  return closed_form<Fading>("fading", "Multiplies the learning rate by gamma.");
}

}  // namespace dpt::schedules
