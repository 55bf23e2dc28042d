#include "optim/optimizers/golden.h"

namespace dpt::optim_test {
namespace {

TEST_CASE("rms_prop: 1001 steps as torch") { CHECK(check_golden_optimizer("rms_prop") == 6); }

TEST_CASE("rms_prop: buffers at the places of the formula, unused ones without a name") {
  using Names = std::vector<std::string>;
  CHECK(states("rms_prop", "{}") == Names{"square_avg"});
  CHECK(states("rms_prop", "{momentum: 0.9}") == Names{"square_avg", "momentum_buffer"});
  CHECK(states("rms_prop", "{}", true) == Names{"square_avg", "momentum_buffer"});
  CHECK(states("rms_prop", "{centered: true}") == Names{"square_avg", "", "grad_avg"});
  CHECK(states("rms_prop", "{centered: true, momentum: 0.9}") ==
        Names{"square_avg", "momentum_buffer", "grad_avg"});
}

TEST_CASE("rms_prop: checks and torch text") {
  CHECK(optimizer_complaints("rms_prop", "{alpha: -0.1}").find("must not be negative") !=
        std::string::npos);
  CHECK(optimizer_text("rms_prop", "1.0e-3") == "optim.RMSprop(model.parameters(), lr=0.001)");
  CHECK(optimizer_text("rms_prop", "{alpha: 0.9, centered: true}") ==
        "optim.RMSprop(model.parameters(), lr=0.01, alpha=0.9, centered=True)");
}

}  // namespace
}  // namespace dpt::optim_test
