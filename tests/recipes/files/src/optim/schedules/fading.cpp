// fading: lr * 0.8^k.
#include <cmath>

#include "formats/python_call.h"
#include "optim/schedules/closed_form.h"

namespace dpt::schedules {
namespace {

struct Fading {
  static constexpr Usage kUsage{"torch.optim.lr_scheduler.ExponentialLR", "schedule: fading"};
  static KeyTable<Fading> keys() { return {}; }
  double lr(double base, int64_t k, int64_t) const {
    return base * std::pow(0.8, static_cast<double>(k));
  }
  std::string torch(int64_t) const {
    return PythonCall("lr_scheduler.ExponentialLR").expression("optimizer").key("gamma", 0.8).str();
  }
};

}  // namespace

ScheduleType fading() {
  return closed_form<Fading>("fading", "Multiplies the learning rate by 0.8.");
}

}  // namespace dpt::schedules
