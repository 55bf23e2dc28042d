#include "optim/schedules/golden.h"

namespace dpt::optim_test {
namespace {

TEST_CASE("schedule cyclic: torch's rates and momenta") {
  CHECK(check_golden_schedule("cyclic") == 8);
}

TEST_CASE("schedule cyclic: counts steps, from its own rate") {
  const ScheduleType& type = row(schedule_table(), "cyclic");
  CHECK(type.interval == "step");
  CHECK(type.own_rate);
  const auto s = schedule("cyclic", "{base_lr: 1, max_lr: 3, step_size_up: 2}", 7, 10);
  CHECK(s->lr(0) == 1);
  CHECK(s->lr(2) == 3);
  CHECK(s->lr(3) == 2);
  CHECK(s->lr(4) == 1);
  CHECK(s->momentum(0) == 0.9);
  CHECK(s->momentum(2) == doctest::Approx(0.8).epsilon(1e-15));
}

TEST_CASE("schedule cyclic: no interval to fall in makes a saw's teeth") {
  const auto s =
      schedule("cyclic", "{base_lr: 0, max_lr: 4, step_size_up: 4, step_size_down: 0}", 1, 10);
  for (int64_t k = 0; k < 10; ++k) CHECK(s->lr(k) == static_cast<double>(k % 4));
}

TEST_CASE("schedule cyclic: complaints and torch text") {
  CHECK(schedule_complaints("cyclic", "{}").find("needs 'base_lr'") != std::string::npos);
  CHECK(schedule_complaints("cyclic", "{base_lr: 0.1}").find("needs 'max_lr'") !=
        std::string::npos);
  CHECK(schedule_complaints("cyclic", "{base_lr: 0, max_lr: 1, mode: exp}").find("for 'mode'") !=
        std::string::npos);
  CHECK(schedule_complaints("cyclic", "{base_lr: 0, max_lr: 1, step_size_up: 0}")
            .find("'step_size_up' must be positive") != std::string::npos);
  CHECK(schedule_complaints("cyclic", "{base_lr: 0, max_lr: 1, max_momentum: 1}").find("below 1") !=
        std::string::npos);
  CHECK(schedule_text("cyclic", "{base_lr: 0.01, max_lr: 1}") ==
        "lr_scheduler.CyclicLR(optimizer, base_lr=0.01, max_lr=1.0)");
  CHECK(schedule_text("cyclic",
                      "{base_lr: 0.01, max_lr: 1, step_size_up: 5, step_size_down: 7, "
                      "mode: exp_range, gamma: 0.9, cycle_momentum: false}") ==
        "lr_scheduler.CyclicLR(optimizer, base_lr=0.01, max_lr=1.0, step_size_up=5, "
        "step_size_down=7, mode=\"exp_range\", gamma=0.9, cycle_momentum=False)");
}

}  // namespace
}  // namespace dpt::optim_test
