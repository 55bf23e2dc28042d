// multi_step: lr * gamma^(number of milestones <= k), as PyTorch's MultiStepLR. A repeated
// milestone counts repeatedly.
#include <algorithm>
#include <cmath>

#include "optim/schedules/closed_form.h"

namespace dpt::schedules {
namespace {

struct MultiStep {
  static constexpr Usage kUsage{"torch.optim.lr_scheduler.MultiStepLR",
                                "schedule: {multi_step: {milestones: [30, 60, 90], gamma: 0.1}}"};

  std::vector<int64_t> milestones;
  double gamma = 0.1;

  static KeyTable<MultiStep> keys() {
    return KeyTable<MultiStep>()
        .required("milestones", &MultiStep::milestones,
                  "intervals at whose start the learning rate decays", kNotNegative)
        .optional("gamma", &MultiStep::gamma, "factor of the learning rate at each decay");
  }

  double lr(double base, int64_t k, int64_t) const {
    const auto passed = std::ranges::count_if(milestones, [=](int64_t m) { return m <= k; });
    return base * std::pow(gamma, static_cast<double>(passed));
  }
};

}  // namespace

ScheduleType multi_step() {
  return closed_form<MultiStep>("multi_step",
                                "Multiplies the learning rate by gamma at each milestone.");
}

}  // namespace dpt::schedules
