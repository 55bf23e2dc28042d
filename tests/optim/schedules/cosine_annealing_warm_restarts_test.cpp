#include "optim/schedules/golden.h"

namespace dpt::optim_test {
namespace {

TEST_CASE("schedule cosine_annealing_warm_restarts: torch's rates") {
  CHECK(check_golden_schedule("cosine_annealing_warm_restarts") == 6);
}

TEST_CASE("schedule cosine_annealing_warm_restarts: periods grow by T_mult") {
  const char* name = "cosine_annealing_warm_restarts";
  const auto s = schedule(name, "{T_0: 2, T_mult: 3, eta_min: 0.5}", 1, 100);
  for (const int64_t restart : {0, 2, 8, 26, 80}) CHECK(s->lr(restart) == 1);
  for (const int64_t middle : {1, 5, 17, 53})
    CHECK(s->lr(middle) == doctest::Approx(0.75).epsilon(1e-15));
  // A period longer than any run.
  CHECK(schedule(name, "{T_0: 1, T_mult: 9000000000000000000}", 1, 100)->lr(99) ==
        doctest::Approx(1).epsilon(1e-15));
}

TEST_CASE("schedule cosine_annealing_warm_restarts: complaints and torch text") {
  const char* name = "cosine_annealing_warm_restarts";
  CHECK(schedule_complaints(name, "{}").find("needs 'T_0'") != std::string::npos);
  CHECK(schedule_complaints(name, "{T_0: 0}").find("'T_0' must be positive") != std::string::npos);
  CHECK(schedule_complaints(name, "{T_0: 1, T_mult: 0}").find("'T_mult' must be positive") !=
        std::string::npos);
  CHECK(schedule_text(name, "10") == "lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=10)");
  CHECK(schedule_text(name, "{T_0: 10, T_mult: 2, eta_min: 0.001}") ==
        "lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=10, T_mult=2, eta_min=0.001)");
}

}  // namespace
}  // namespace dpt::optim_test
