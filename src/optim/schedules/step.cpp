// step: lr * gamma^floor(k / step_size), as PyTorch's StepLR.
#include <cmath>

#include "optim/schedules/closed_form.h"

namespace dpt::schedules {
namespace {

struct Step {
  static constexpr Usage kUsage{"torch.optim.lr_scheduler.StepLR",
                                "schedule: {step: {step_size: 30, gamma: 0.1}}"};

  int64_t step_size = 0;
  double gamma = 0.1;

  static KeyTable<Step> keys() {
    return KeyTable<Step>()
        .required("step_size", &Step::step_size, "number of intervals between two decays",
                  kPositive)
        .optional("gamma", &Step::gamma, "factor of the learning rate at each decay");
  }

  double lr(double base, int64_t k, int64_t) const {
    const int64_t decays = k / step_size;
    return base * std::pow(gamma, static_cast<double>(decays));
  }
};

}  // namespace

ScheduleType step() {
  return closed_form<Step>("step",
                           "Multiplies the learning rate by gamma every step_size intervals.");
}

}  // namespace dpt::schedules
