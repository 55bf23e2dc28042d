#include "optim/schedules/golden.h"

namespace dpt::optim_test {
namespace {

TEST_CASE("schedule one_cycle: torch's rates and momenta") {
  CHECK(check_golden_schedule("one_cycle") == 9);
}

TEST_CASE("schedule one_cycle: counts steps, and stays at its end") {
  CHECK(row(schedule_table(), "one_cycle").interval == "step");
  const auto s = schedule("one_cycle", "0.1", 7, 10);
  CHECK(s->lr(0) == doctest::Approx(0.1 / 25).epsilon(1e-15));
  CHECK(s->lr(9) == doctest::Approx(0.1 / 25 / 1e4).epsilon(1e-12));
  CHECK(s->lr(50) == s->lr(9));
}

TEST_CASE("schedule one_cycle: a phase without length divides by nothing") {
  for (int64_t total : {1, 2, 3, 4, 10}) {
    for (const char* start : {"0.0", "0.1", "0.5", "1.0"}) {
      const auto s = schedule(
          "one_cycle", std::string("{max_lr: 1, three_phase: true, pct_start: ") + start + "}", 1,
          total);
      for (int64_t k = 0; k < total; ++k) {
        CAPTURE(start);
        CAPTURE(total);
        CAPTURE(k);
        CHECK(std::isfinite(s->lr(k)));
        CHECK(std::isfinite(s->momentum(k).value_or(NAN)));
      }
    }
  }
}

TEST_CASE("schedule one_cycle: complaints and torch text") {
  CHECK(schedule_complaints("one_cycle", "{}").find("needs 'max_lr'") != std::string::npos);
  CHECK(schedule_complaints("one_cycle", "{max_lr: 1, anneal_strategy: lin}")
            .find("for 'anneal_strategy'") != std::string::npos);
  CHECK(schedule_complaints("one_cycle", "{max_lr: 1, pct_start: 1.1}").find("between 0 and 1") !=
        std::string::npos);
  CHECK(schedule_complaints("one_cycle", "{max_lr: []}").find("must have at least one number") !=
        std::string::npos);
  CHECK(schedule_text("one_cycle", "[0.1, 0.01]", 40) ==
        "lr_scheduler.OneCycleLR(optimizer, max_lr=[group[\"lr\"] for group in "
        "optimizer.param_groups], total_steps=40)");
  CHECK(schedule_text("one_cycle", "{max_lr: 1, three_phase: true, cycle_momentum: false}", 40) ==
        "lr_scheduler.OneCycleLR(optimizer, max_lr=1.0, total_steps=40, cycle_momentum=False, "
        "three_phase=True)");
}

}  // namespace
}  // namespace dpt::optim_test
