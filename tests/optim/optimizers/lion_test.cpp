#include "optim/optimizers/golden.h"

namespace dpt::optim_test {
namespace {

TEST_CASE("lion: 1001 steps as google/automl's") { CHECK(check_golden_optimizer("lion") == 3); }

TEST_CASE("lion: one buffer") {
  CHECK(states("lion", "{}") == std::vector<std::string>{"exp_avg"});
}

TEST_CASE("lion: the schedule's momentum is beta1, and the decay is decoupled") {
  const OptimizerType& type = row(optimizer_table(), "lion");
  const OptimizerStep cycled = type.step(settings(type, "{lr: 0.01, weight_decay: 0.5}"), 3, 0.02,
                                         [](int64_t) { return 0.8; });
  const auto& s = std::get<formula::Lion<double>>(cycled);
  CHECK(s.beta1 == 0.8);
  CHECK(s.one_minus_beta1 == 1 - 0.8);
  CHECK(s.beta2 == 0.99);
  CHECK(s.keep == 1 - 0.02 * 0.5);
}

TEST_CASE("lion: a direction of 0 moves nothing, one of nan is seen") {
  const formula::Lion<double> s{
      .lr = 0.5, .beta1 = 0.5, .one_minus_beta1 = 0.5, .beta2 = 0.5, .one_minus_beta2 = 0.5};
  double weight = 2, exp_avg = 3;
  formula::lion(s, weight, exp_avg, -3.0);
  CHECK(weight == 2);
  CHECK(exp_avg == 0);
  formula::lion(s, weight, exp_avg, -1e-300);
  CHECK(weight == 2.5);
  formula::lion(s, weight, exp_avg, double{NAN});
  CHECK(std::isnan(weight));
}

TEST_CASE("lion: checks and torch text") {
  CHECK(optimizer_complaints("lion", "{betas: [0.9]}").find("must be two numbers") !=
        std::string::npos);
  CHECK(optimizer_text("lion", "{}") == "Lion(model.parameters(), lr=0.0001)");
  CHECK(optimizer_text("lion", "{betas: [0.95, 0.98], weight_decay: 0.1}") ==
        "Lion(model.parameters(), lr=0.0001, betas=[0.95, 0.98], weight_decay=0.1)");
  CHECK(row(optimizer_table(), "lion").torch_class.starts_with("class Lion(optim.Optimizer):"));
}

}  // namespace
}  // namespace dpt::optim_test
