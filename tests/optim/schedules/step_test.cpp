#include "optim/schedules/golden.h"

namespace dpt::optim_test {
namespace {

TEST_CASE("schedule step: torch's rates") { CHECK(check_golden_schedule("step") == 4); }

TEST_CASE("schedule step: the main value is step_size, which must be there and positive") {
  const auto s = schedule("step", "2", 1, 10);
  CHECK(s->lr(1) == 1);
  CHECK(s->lr(2) == doctest::Approx(0.1).epsilon(1e-15));
  CHECK(schedule_complaints("step", "{gamma: 0.5}").find("needs 'step_size'") != std::string::npos);
  CHECK(schedule_complaints("step", "0").find("must be positive") != std::string::npos);
}

TEST_CASE("schedule step: as torch text") {
  CHECK(schedule_text("step", "30") == "lr_scheduler.StepLR(optimizer, step_size=30)");
  CHECK(schedule_text("step", "{step_size: 3, gamma: 0.5}") ==
        "lr_scheduler.StepLR(optimizer, step_size=3, gamma=0.5)");
}

}  // namespace
}  // namespace dpt::optim_test
