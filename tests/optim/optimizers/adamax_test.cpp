#include "optim/optimizers/golden.h"

namespace dpt::optim_test {
namespace {

TEST_CASE("adamax: 1001 steps as torch") { CHECK(check_golden_optimizer("adamax") == 3); }

TEST_CASE("adamax: buffers by torch's names") {
  CHECK(states("adamax", "{}") == std::vector<std::string>{"exp_avg", "exp_inf"});
}

TEST_CASE("adamax: the schedule's momentum is beta1, in the correction too") {
  const OptimizerType& type = row(optimizer_table(), "adamax");
  const OptimizerStep cycled =
      type.step(settings(type, "0.01"), 3, 0.02, [](int64_t) { return 0.8; });
  const auto& s = std::get<formula::Adamax<double>>(cycled);
  CHECK(s.clr == doctest::Approx(0.02 / (1 - 0.512)).epsilon(1e-14));
  CHECK(s.one_minus_beta1 == 1 - 0.8);
}

// torch.maximum gives nan if one of its arguments is nan.
TEST_CASE("adamax: a nan stays in the maximum") {
  const formula::Adamax<double> s{.clr = 1, .one_minus_beta1 = 0.1, .beta2 = 0.9, .eps = 0};
  for (const bool gradient : {false, true}) {
    double weight = 0, exp_avg = 0, exp_inf = gradient ? 1 : NAN;
    formula::adamax(s, weight, exp_avg, exp_inf, gradient ? double{NAN} : 1);
    CHECK(std::isnan(exp_inf));
  }
}

TEST_CASE("adamax: checks and torch text") {
  CHECK(optimizer_complaints("adamax", "{betas: [0.9]}").find("must be two numbers") !=
        std::string::npos);
  CHECK(optimizer_text("adamax", "{}") == "optim.Adamax(model.parameters(), lr=0.002)");
  CHECK(optimizer_text("adamax", "{betas: [0.8, 0.99], weight_decay: 0.01}") ==
        "optim.Adamax(model.parameters(), lr=0.002, betas=[0.8, 0.99], weight_decay=0.01)");
}

}  // namespace
}  // namespace dpt::optim_test
