#include "optim/schedules/golden.h"

namespace dpt::optim_test {
namespace {

TEST_CASE("schedule cosine_annealing: torch's rates, past T_max too") {
  CHECK(check_golden_schedule("cosine_annealing") == 5);
}

TEST_CASE("schedule cosine_annealing: without T_max it is the run's length") {
  const auto s = schedule("cosine_annealing", "{eta_min: 0.1}", 1, 8);
  CHECK(s->lr(0) == 1);
  CHECK(s->lr(4) == doctest::Approx(0.55).epsilon(1e-15));
  CHECK(s->lr(8) == doctest::Approx(0.1).epsilon(1e-15));
  CHECK(schedule_text("cosine_annealing", "{}", 8) ==
        "lr_scheduler.CosineAnnealingLR(optimizer, T_max=8)");
  CHECK(schedule_text("cosine_annealing", "{T_max: 5, eta_min: 0.001}", 8) ==
        "lr_scheduler.CosineAnnealingLR(optimizer, T_max=5, eta_min=0.001)");
}

TEST_CASE("schedule cosine_annealing: complaints") {
  CHECK(schedule_complaints("cosine_annealing", "0").find("'T_max' must be positive") !=
        std::string::npos);
  CHECK(schedule_complaints("cosine_annealing", "{t_max: 5}").find("did you mean 'T_max'") !=
        std::string::npos);
}

}  // namespace
}  // namespace dpt::optim_test
