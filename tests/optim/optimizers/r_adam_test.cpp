#include "optim/optimizers/golden.h"

namespace dpt::optim_test {
namespace {

formula::RAdam<double> step_of(const std::string& text, int64_t t, const Momenta& momenta = {}) {
  const OptimizerType& type = row(optimizer_table(), "r_adam");
  return std::get<formula::RAdam<double>>(type.step(settings(type, text), t, 0.5, momenta));
}

TEST_CASE("r_adam: 1001 steps as torch") { CHECK(check_golden_optimizer("r_adam") == 5); }

TEST_CASE("r_adam: buffers by torch's names") {
  CHECK(states("r_adam", "{}") == std::vector<std::string>{"exp_avg", "exp_avg_sq"});
}

TEST_CASE("r_adam: five steps of momentum come first, with the default betas") {
  CHECK_FALSE(step_of("{}", 5).rectified);
  CHECK(step_of("{}", 6).rectified);
  CHECK(step_of("{}", 100'000'000).rectification == doctest::Approx(1).epsilon(1e-15));
  CHECK_FALSE(step_of("{betas: [0.9, 0.6]}", 1000).rectified);
  CHECK_FALSE(step_of("{betas: [0.9, 0]}", 1000).rectified);
}

TEST_CASE("r_adam: a decoupled decay takes from the weights, by the rate of the step") {
  CHECK(step_of("{weight_decay: 0.1}", 1).weight_decay == 0.1);
  CHECK(step_of("{weight_decay: 0.1}", 1).keep == 1);
  CHECK(step_of("{weight_decay: 0.1, decoupled_weight_decay: true}", 1).weight_decay == 0);
  CHECK(step_of("{weight_decay: 0.1, decoupled_weight_decay: true}", 1).keep == 1 - 0.5 * 0.1);
}

TEST_CASE("r_adam: the schedule's momentum is beta1, in the correction too") {
  const Momenta cycled = [](int64_t) { return 0.8; };
  CHECK(step_of("{}", 3, cycled).correction1 == doctest::Approx(1 - 0.512).epsilon(1e-14));
  CHECK(step_of("{}", 3, cycled).one_minus_beta1 == 1 - 0.8);
}

TEST_CASE("r_adam: checks and torch text") {
  CHECK(optimizer_complaints("r_adam", "{betas: [0.9]}").find("must be two numbers") !=
        std::string::npos);
  CHECK(optimizer_text("r_adam", "{}") == "optim.RAdam(model.parameters(), lr=0.001)");
  CHECK(optimizer_text("r_adam", "{weight_decay: 0.01, decoupled_weight_decay: true}") ==
        "optim.RAdam(model.parameters(), lr=0.001, weight_decay=0.01, "
        "decoupled_weight_decay=True)");
}

}  // namespace
}  // namespace dpt::optim_test
