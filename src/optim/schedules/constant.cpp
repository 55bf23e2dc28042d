// constant: the optimizer's own learning rate.
#include "formats/python_call.h"
#include "optim/schedules/closed_form.h"

namespace dpt::schedules {
namespace {

struct Constant {
  static constexpr Usage kUsage{"", "schedule: constant"};
  static KeyTable<Constant> keys() { return {}; }

  double lr(double base, int64_t, int64_t) const { return base; }

  // PyTorch's ConstantLR lowers the rate for the first five epochs by default, hence the factor 1.
  std::string torch(int64_t) const {
    return PythonCall("lr_scheduler.ConstantLR").expression("optimizer").key("factor", 1.0).str();
  }
};

}  // namespace

ScheduleType constant() {
  return closed_form<Constant>("constant", "Keeps the optimizer's learning rate.");
}

}  // namespace dpt::schedules
