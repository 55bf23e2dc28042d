// exponential: lr * gamma^k, as PyTorch's ExponentialLR.
#include <cmath>

#include "optim/schedules/closed_form.h"

namespace dpt::schedules {
namespace {

struct Exponential {
  static constexpr Usage kUsage{"torch.optim.lr_scheduler.ExponentialLR",
                                "schedule: {exponential: {gamma: 0.95}}"};

  double gamma = 0;

  static KeyTable<Exponential> keys() {
    return KeyTable<Exponential>().required("gamma", &Exponential::gamma,
                                            "factor of the learning rate at each interval");
  }

  double lr(double base, int64_t k, int64_t) const {
    return base * std::pow(gamma, static_cast<double>(k));
  }
};

}  // namespace

ScheduleType exponential() {
  return closed_form<Exponential>("exponential",
                                  "Multiplies the learning rate by gamma at every interval.");
}

}  // namespace dpt::schedules
