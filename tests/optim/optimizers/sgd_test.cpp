#include "optim/optimizers/golden.h"

namespace dpt::optim_test {
namespace {

TEST_CASE("sgd: 1001 steps as torch") { CHECK(check_golden_optimizer("sgd") == 8); }

TEST_CASE("sgd: lr is the main value, with torch's default") {
  const OptimizerType& type = row(optimizer_table(), "sgd");
  CHECK(type.lr(settings(type, "0.5")) == 0.5);
  CHECK(type.lr(settings(type, "{}")) == 1e-3);
}

TEST_CASE("sgd: a buffer for momentum, the schedule's too") {
  CHECK(states("sgd", "0.1").empty());
  CHECK(states("sgd", "{momentum: 0.9}") == std::vector<std::string>{"momentum_buffer"});
  CHECK(states("sgd", "0.1", true) == std::vector<std::string>{"momentum_buffer"});
}

TEST_CASE("sgd: the schedule's momentum takes the place of the settings'") {
  const OptimizerType& type = row(optimizer_table(), "sgd");
  Trainer cycled(type, settings(type, "0.1"), true),
      fixed(type, settings(type, "{lr: 0.1, momentum: 0.9}"));
  Weights a{}, b{}, gradient{};
  gradient.fill(1);
  for (int i = 0; i < 3; ++i) {
    cycled.step(a, gradient, [](int64_t) { return 0.9; });
    fixed.step(b, gradient);
  }
  CHECK(a == b);
  CHECK(a[0] == doctest::Approx(-0.1 * (1 + 1.9 + 2.71)).epsilon(1e-14));
}

TEST_CASE("sgd: torch's checks") {
  const char* nesterov = "'nesterov' requires a momentum and zero dampening";
  CHECK(optimizer_complaints("sgd", "{nesterov: true}").find(nesterov) != std::string::npos);
  CHECK(optimizer_complaints("sgd", "{nesterov: true, momentum: 0.9, dampening: 0.1}")
            .find("test.yaml:1:12: error: ") == 0);
  CHECK(optimizer_complaints("sgd", "{nesterov: true, momentum: 0.9}").empty());
  for (const char* negative : {"{lr: -1}", "{momentum: -0.1}", "{weight_decay: -0.1}"})
    CHECK(optimizer_complaints("sgd", negative).find("must not be negative") != std::string::npos);
  CHECK(optimizer_complaints("sgd", "{momentun: 0.9}").find("did you mean 'momentum'") !=
        std::string::npos);
}

TEST_CASE("sgd: as torch text") {
  CHECK(optimizer_text("sgd", "1.0e-06") == "optim.SGD(model.parameters(), lr=1e-06)");
  CHECK(optimizer_text("sgd", "{lr: 0.1, momentum: 0.9, nesterov: true}") ==
        "optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True)");
}

}  // namespace
}  // namespace dpt::optim_test
