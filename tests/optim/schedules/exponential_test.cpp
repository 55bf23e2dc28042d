#include "optim/schedules/golden.h"

namespace dpt::optim_test {
namespace {

TEST_CASE("schedule exponential: torch's rates") {
  CHECK(check_golden_schedule("exponential") == 3);
}

TEST_CASE("schedule exponential: gamma is the main value and must be there") {
  CHECK(schedule("exponential", "0.5", 1, 10)->lr(3) == 0.125);
  CHECK(schedule_complaints("exponential", "{}").find("needs 'gamma'") != std::string::npos);
  CHECK(schedule_text("exponential", "0.9") == "lr_scheduler.ExponentialLR(optimizer, gamma=0.9)");
}

}  // namespace
}  // namespace dpt::optim_test
