#include "optim/schedules/golden.h"

namespace dpt::optim_test {
namespace {

TEST_CASE("schedule multi_step: torch's rates, milestones unsorted and twice") {
  CHECK(check_golden_schedule("multi_step") == 3);
}

TEST_CASE("schedule multi_step: a milestone's own interval is already lower") {
  const auto s = schedule("multi_step", "[3, 5]", 1, 10);
  CHECK(s->lr(2) == 1);
  CHECK(s->lr(3) == doctest::Approx(0.1).epsilon(1e-15));
  CHECK(s->lr(5) == doctest::Approx(0.01).epsilon(1e-15));
}

TEST_CASE("schedule multi_step: complaints and torch text") {
  CHECK(schedule_complaints("multi_step", "{}").find("needs 'milestones'") != std::string::npos);
  CHECK(schedule_complaints("multi_step", "[-1]").find("negative") != std::string::npos);
  CHECK(schedule_text("multi_step", "[30, 80]") ==
        "lr_scheduler.MultiStepLR(optimizer, milestones=[30, 80])");
}

}  // namespace
}  // namespace dpt::optim_test
