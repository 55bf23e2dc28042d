#include "optim/schedules/golden.h"

namespace dpt::optim_test {
namespace {

TEST_CASE("schedule constant: the base rate, and torch's after a warm-up") {
  CHECK(schedule("constant", "{}", 0.3, 10)->lr(7) == 0.3);
  CHECK(check_golden_schedule("constant") == 1);
}

TEST_CASE("schedule constant: takes no keys, and tells torch not to lower the rate") {
  CHECK(schedule_complaints("constant", "3").find("takes no settings") != std::string::npos);
  CHECK(schedule_text("constant", "{}") == "lr_scheduler.ConstantLR(optimizer, factor=1.0)");
}

}  // namespace
}  // namespace dpt::optim_test
