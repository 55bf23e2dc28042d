// constant_lr: lr * factor in the first total_iters intervals, then lr, as PyTorch's ConstantLR.
#include "optim/schedules/closed_form.h"

namespace dpt::schedules {
namespace {

constexpr double kFactor = 1.0 / 3;

struct ConstantLr {
  static constexpr Usage kUsage{"torch.optim.lr_scheduler.ConstantLR",
                                "schedule: {constant_lr: {factor: 0.5, total_iters: 10}}"};

  double factor = kFactor;
  int64_t total_iters = 5;

  static KeyTable<ConstantLr> keys() {
    return KeyTable<ConstantLr>()
        .optional("factor", &ConstantLr::factor,
                  "factor of the learning rate before interval total_iters", kPositiveFraction)
        .optional("total_iters", &ConstantLr::total_iters, "number of intervals with the factor",
                  kPositive);
  }

  double lr(double base, int64_t k, int64_t) const {
    return k < total_iters ? base * factor : base;
  }
};

}  // namespace

ScheduleType constant_lr() {
  return closed_form<ConstantLr>("constant_lr",
                                 "Multiplies the learning rate by factor in the first intervals.");
}

}  // namespace dpt::schedules
