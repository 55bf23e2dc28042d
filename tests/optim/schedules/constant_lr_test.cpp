#include "optim/schedules/golden.h"

namespace dpt::optim_test {
namespace {

TEST_CASE("schedule constant_lr: torch's rates") {
  CHECK(check_golden_schedule("constant_lr") == 3);
}

TEST_CASE("schedule constant_lr: complaints and torch text") {
  CHECK(schedule_complaints("constant_lr", "{factor: 0}").find("above 0 and at most 1") !=
        std::string::npos);
  CHECK(schedule_complaints("constant_lr", "{total_iters: 0}").find("must be positive") !=
        std::string::npos);
  CHECK(schedule_text("constant_lr", "{}") == "lr_scheduler.ConstantLR(optimizer)");
  CHECK(schedule_text("constant_lr", "{factor: 0.5, total_iters: 7}") ==
        "lr_scheduler.ConstantLR(optimizer, factor=0.5, total_iters=7)");
}

}  // namespace
}  // namespace dpt::optim_test
