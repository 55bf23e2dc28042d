#include "optim/optimizers/golden.h"

namespace dpt::optim_test {
namespace {

// backend/cpu/matrix_update_test.cpp has matrices, oracles/curves_test.cpp whole runs of PyTorch.
TEST_CASE("muon: the average and the direction of an element") {
  double exp_avg = 2, direction = 0;
  formula::Muon<double> s{.momentum = 0.75, .one_minus_momentum = 0.25, .nesterov = true};
  formula::muon(s, exp_avg, direction, 6.0);
  CHECK(exp_avg == 3);
  CHECK(direction == 6 - 0.75 * 3);
  s.nesterov = false;
  formula::muon(s, exp_avg, direction, 7.0);
  CHECK(exp_avg == 4);
  CHECK(direction == 4);
}

TEST_CASE("muon: two buffers, or those of adam_w") {
  CHECK(states("muon", "{}") == std::vector<std::string>{"exp_avg", "exp_avg_sq"});
  CHECK(states("muon", "{adam_w: {amsgrad: true}}").size() == 3);
}

TEST_CASE("muon: matrices have its settings, other parameters those of adam_w") {
  const OptimizerType& type = row(optimizer_table(), "muon");
  const std::any given =
      settings(type,
               "{lr: 0.02, weight_decay: 0.5, adam_w: {lr: 0.001, betas: [0.8, 0.9]}, "
               "adam_w_for: [embed, head]}");
  CHECK(type.elementwise(given).size() == 2);
  CHECK(type.lr(given) == 0.02);
  CHECK(type.weight_decay(given) == 0.5);
  const OptimizerStep matrices = type.step(type.with(given, 0.1, 0.25), 1, 0.2, {});
  const auto& muon = std::get<formula::Muon<double>>(matrices);
  CHECK(muon.lr == 0.2);
  CHECK(muon.keep == 1 - 0.2 * 0.25);
  CHECK(muon.b == -4.775);
  CHECK_FALSE(muon.match_rms);

  const std::any others = type.of_elements(given);
  CHECK(type.lr(others) == 0.001);
  CHECK(type.weight_decay(others) == 0.01);
  const OptimizerStep elements = type.step(type.with(others, 0.1, 0.25), 1, 0.2, {});
  const auto& adam = std::get<formula::Adam<double>>(elements);
  CHECK(adam.beta2 == 0.9);
  CHECK(adam.keep == 1 - 0.2 * 0.25);
}

TEST_CASE("muon: checks") {
  CHECK(optimizer_complaints("muon", "{ns_coefficients: [1, 2]}").find("must be three numbers") !=
        std::string::npos);
  CHECK(optimizer_complaints("muon", "{ns_steps: 100}").find("must be between 0 and 99") !=
        std::string::npos);
  CHECK(optimizer_complaints("muon", "{adam_w: {betas: [0.9]}}").find("must be two numbers") !=
        std::string::npos);
  CHECK(optimizer_complaints("muon", "{adjust_lr_fn: rms}").find("match_rms_adamw") !=
        std::string::npos);
}

}  // namespace
}  // namespace dpt::optim_test
