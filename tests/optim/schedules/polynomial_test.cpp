#include "optim/schedules/golden.h"

namespace dpt::optim_test {
namespace {

TEST_CASE("schedule polynomial: torch's rates") { CHECK(check_golden_schedule("polynomial") == 4); }

TEST_CASE("schedule polynomial: 0 from its end on, unless the power is 0") {
  const auto s = schedule("polynomial", "{total_iters: 4, power: 2}", 1, 100);
  CHECK(s->lr(0) == 1);
  CHECK(s->lr(2) == 0.25);
  CHECK(s->lr(4) == 0);
  CHECK(s->lr(99) == 0);
  CHECK(schedule("polynomial", "{power: 0}", 0.5, 100)->lr(99) == 0.5);
}

TEST_CASE("schedule polynomial: complaints and torch text") {
  CHECK(schedule_complaints("polynomial", "0").find("'total_iters' must be positive") !=
        std::string::npos);
  CHECK(schedule_complaints("polynomial", "{power: -1}").find("must not be negative") !=
        std::string::npos);
  CHECK(schedule_text("polynomial", "{}") == "lr_scheduler.PolynomialLR(optimizer)");
  CHECK(schedule_text("polynomial", "{total_iters: 90, power: 0.9}") ==
        "lr_scheduler.PolynomialLR(optimizer, total_iters=90, power=0.9)");
}

}  // namespace
}  // namespace dpt::optim_test
