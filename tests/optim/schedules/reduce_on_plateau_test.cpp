#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "optim/schedules/golden.h"

namespace dpt::optim_test {
namespace {

TEST_CASE("schedule reduce_on_plateau: torch's rates for torch's metrics") {
  CHECK(check_golden_schedule("reduce_on_plateau") == 6);
}

TEST_CASE("schedule reduce_on_plateau: a loss that is no number is no progress") {
  const auto s = schedule("reduce_on_plateau", "{patience: 1, factor: 0.5}", 1, 10);
  s->metric(1);
  for (int i = 0; i < 2; ++i) s->metric(std::numeric_limits<double>::quiet_NaN());
  CHECK(s->lr(3) == 0.5);
}

TEST_CASE("schedule reduce_on_plateau: what goes on with another rate keeps the decays so far") {
  const auto s = schedule("reduce_on_plateau", "{patience: 0, factor: 0.5}", 0.3, 10);
  for (int i = 0; i < 3; ++i) s->metric(1);
  CHECK(s->lr(3) == 0.3 * 0.5 * 0.5);
  const auto rest = [&](double base, std::span<const double> state) {
    const auto out = schedule("reduce_on_plateau", "{patience: 0, factor: 0.5}", base, 10);
    const std::string note = out->restore(state);
    return std::pair(out->lr(3), note);
  };
  const std::vector<double> state = s->state();
  CHECK(rest(0.3, state) == std::pair(s->lr(3), std::string()));
  CHECK(rest(0.1, state).first == doctest::Approx(0.025).epsilon(1e-15));
  CHECK(
      rest(0.1, state).second ==
      "the learning rate continues at 0.025: 0.1 times the reductions by reduce_on_plateau so far");
  CHECK(rest(0.1, std::span(state).first(4)) == std::pair(s->lr(3), std::string()));
}

TEST_CASE("schedule reduce_on_plateau: complaints and torch text") {
  CHECK(row(schedule_table(), "reduce_on_plateau").needs_metric);
  CHECK(schedule_complaints("reduce_on_plateau", "{factor: 1.0}").find("below 1") !=
        std::string::npos);
  CHECK(schedule_complaints("reduce_on_plateau", "minimum").find("for 'mode'") !=
        std::string::npos);
  CHECK(schedule_text("reduce_on_plateau", "{mode: max, patience: 3, eps: 0.0}") ==
        "lr_scheduler.ReduceLROnPlateau(optimizer, mode=\"max\", patience=3, eps=0.0)");
}

}  // namespace
}  // namespace dpt::optim_test
