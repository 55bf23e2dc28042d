#include "optim/schedules/golden.h"

namespace dpt::optim_test {
namespace {

TEST_CASE("schedule linear: torch's rates") { CHECK(check_golden_schedule("linear") == 4); }

TEST_CASE("schedule linear: stays at end_factor after total_iters") {
  const auto s = schedule("linear", "{start_factor: 0.5, end_factor: 0.25, total_iters: 2}", 1, 9);
  CHECK(s->lr(0) == 0.5);
  CHECK(s->lr(1) == 0.375);
  CHECK(s->lr(2) == 0.25);
  CHECK(s->lr(8) == 0.25);
}

TEST_CASE("schedule linear: complaints and torch text") {
  CHECK(schedule_complaints("linear", "0").find("above 0 and at most 1") != std::string::npos);
  CHECK(schedule_complaints("linear", "{end_factor: 1.5}").find("between 0 and 1") !=
        std::string::npos);
  CHECK(schedule_text("linear", "{}") == "lr_scheduler.LinearLR(optimizer)");
  CHECK(schedule_text("linear", "{start_factor: 0.5, total_iters: 7}") ==
        "lr_scheduler.LinearLR(optimizer, start_factor=0.5, total_iters=7)");
}

}  // namespace
}  // namespace dpt::optim_test
