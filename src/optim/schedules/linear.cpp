// linear: lr * f, where f goes from start_factor to end_factor in total_iters intervals, as
// PyTorch's LinearLR.
#include <algorithm>

#include "optim/schedules/closed_form.h"

namespace dpt::schedules {
namespace {

constexpr double kStart = 1.0 / 3;

struct Linear {
  static constexpr Usage kUsage{
      "torch.optim.lr_scheduler.LinearLR",
      "schedule: {linear: {start_factor: 1, end_factor: 0.1, total_iters: 10}}"};

  double start_factor = kStart;
  double end_factor = 1;
  int64_t total_iters = 5;

  static KeyTable<Linear> keys() {
    return KeyTable<Linear>()
        .optional("start_factor", &Linear::start_factor,
                  "factor of the learning rate in the first interval", kPositiveFraction)
        .optional("end_factor", &Linear::end_factor,
                  "factor of the learning rate from interval total_iters on", kProbability)
        .optional("total_iters", &Linear::total_iters,
                  "number of intervals between the two factors", kPositive);
  }

  double lr(double base, int64_t k, int64_t) const {
    const auto done = static_cast<double>(std::min(k, total_iters));
    return base *
           (start_factor + (end_factor - start_factor) * done / static_cast<double>(total_iters));
  }
};

}  // namespace

ScheduleType linear() {
  return closed_form<Linear>("linear", "Changes the learning rate linearly between two factors.");
}

}  // namespace dpt::schedules
