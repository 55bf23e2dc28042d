#include "optim/optimizers/golden.h"

namespace dpt::optim_test {
namespace {

const formula::NAdam<double>& scalars(const OptimizerStep& step) {
  return std::get<formula::NAdam<double>>(step);
}

TEST_CASE("n_adam: 1001 steps as torch") { CHECK(check_golden_optimizer("n_adam") == 7); }

TEST_CASE("n_adam: buffers by torch's names") {
  CHECK(states("n_adam", "{}") == std::vector<std::string>{"exp_avg", "exp_avg_sq"});
}

TEST_CASE("n_adam: a decoupled decay takes from the weights, by the rate of the step") {
  const OptimizerType& type = row(optimizer_table(), "n_adam");
  const OptimizerStep added = type.step(settings(type, "{weight_decay: 0.1}"), 1, 0.5, {});
  CHECK(scalars(added).weight_decay == 0.1);
  CHECK(scalars(added).keep == 1);
  const OptimizerStep decoupled =
      type.step(settings(type, "{weight_decay: 0.1, decoupled_weight_decay: true}"), 1, 0.5, {});
  CHECK(scalars(decoupled).weight_decay == 0);
  CHECK(scalars(decoupled).keep == 1 - 0.5 * 0.1);
}

// The product of all momenta is computed anew in each step, up to where it has no effect.
TEST_CASE("n_adam: the product of a million momenta") {
  const OptimizerType& type = row(optimizer_table(), "n_adam");
  const std::any slow = settings(type, "{betas: [0.9999, 0.999], momentum_decay: 0}");
  const double mu = 0.9999 / 2;
  const auto gradient_step = [&](int64_t t) {
    return scalars(type.step(slow, t, 1, {})).gradient_step;
  };
  CHECK(gradient_step(1) == doctest::Approx(1).epsilon(1e-15));
  CHECK(gradient_step(20) == doctest::Approx((1 - mu) / (1 - std::pow(mu, 20))).epsilon(1e-14));
  CHECK(gradient_step(1'000'000) == 1 - mu);
}

TEST_CASE("n_adam: the product is that of the momenta that a schedule has set") {
  const OptimizerType& type = row(optimizer_table(), "n_adam");
  const std::any plain = settings(type, "{lr: 1, momentum_decay: 0}");
  const double momenta[] = {0.9, 0.6, 0.8};
  const OptimizerStep third = type.step(plain, 3, 1, [&](int64_t t) { return momenta[t - 1]; });
  const double product = 0.9 * 0.6 * 0.8 / 8;  // without decay a momentum is beta1 / 2
  CHECK(scalars(third).one_minus_beta1 == 1 - 0.8);
  CHECK(scalars(third).gradient_step == doctest::Approx((1 - 0.4) / (1 - product)).epsilon(1e-15));
  CHECK(scalars(third).average_step == doctest::Approx(0.4 / (1 - product * 0.4)).epsilon(1e-15));
}

TEST_CASE("n_adam: checks and torch text") {
  CHECK(optimizer_complaints("n_adam", "{betas: [0.9]}").find("must be two numbers") !=
        std::string::npos);
  CHECK(optimizer_complaints("n_adam", "{momentum_decay: -1}").find("must not be negative") !=
        std::string::npos);
  CHECK(optimizer_text("n_adam", "{}") == "optim.NAdam(model.parameters(), lr=0.002)");
  CHECK(optimizer_text("n_adam", "{momentum_decay: 0.01, decoupled_weight_decay: true}") ==
        "optim.NAdam(model.parameters(), lr=0.002, momentum_decay=0.01, "
        "decoupled_weight_decay=True)");
}

}  // namespace
}  // namespace dpt::optim_test
