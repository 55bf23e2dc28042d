#include "optim/optimizers/golden.h"

namespace dpt::optim_test {
namespace {

TEST_CASE("adam: 1001 steps as torch") { CHECK(check_golden_optimizer("adam") == 6); }

TEST_CASE("adam: buffers by torch's names") {
  CHECK(states("adam", "{}") == std::vector<std::string>{"exp_avg", "exp_avg_sq"});
  CHECK(states("adam", "{amsgrad: true}") ==
        std::vector<std::string>{"exp_avg", "exp_avg_sq", "max_exp_avg_sq"});
}

TEST_CASE("adam: the schedule's momentum is beta1, in the correction too") {
  const OptimizerType& type = row(optimizer_table(), "adam");
  const OptimizerStep cycled =
      type.step(settings(type, "0.01"), 3, 0.02, [](int64_t) { return 0.8; });
  const OptimizerStep fixed =
      type.step(settings(type, "{lr: 5, betas: [0.8, 0.999]}"), 3, 0.02, {});
  const auto& a = std::get<formula::Adam<double>>(cycled);
  const auto& b = std::get<formula::Adam<double>>(fixed);
  CHECK(a.step_size == b.step_size);
  CHECK(a.one_minus_beta1 == b.one_minus_beta1);
  CHECK(a.step_size == doctest::Approx(0.02 / (1 - 0.512)).epsilon(1e-14));
}

TEST_CASE("adam: torch's checks") {
  CHECK(optimizer_complaints("adam", "{betas: 0.9}").find("must be two numbers") !=
        std::string::npos);
  CHECK(optimizer_complaints("adam", "{betas: [0.9, 0.99, 0.999]}")
            .find("test.yaml:1:9: error: 'betas' must be two numbers") == 0);
  CHECK(optimizer_complaints("adam", "{betas: [0.9, 1.0]}").find("below 1") != std::string::npos);
  CHECK(optimizer_complaints("adam", "{eps: -1.0}").find("must not be negative") !=
        std::string::npos);
}

TEST_CASE("adam: as torch text") {
  CHECK(optimizer_text("adam", "0.01") == "optim.Adam(model.parameters(), lr=0.01)");
  CHECK(optimizer_text("adam", "{betas: [0.8, 0.99], eps: 1.0e-4, amsgrad: true}") ==
        "optim.Adam(model.parameters(), lr=0.001, betas=[0.8, 0.99], eps=0.0001, amsgrad=True)");
}

}  // namespace
}  // namespace dpt::optim_test
