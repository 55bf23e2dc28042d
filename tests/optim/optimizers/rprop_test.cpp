#include "optim/optimizers/golden.h"

namespace dpt::optim_test {
namespace {

TEST_CASE("rprop: 1001 steps as torch") { CHECK(check_golden_optimizer("rprop") == 3); }

TEST_CASE("rprop: buffers by torch's names") {
  CHECK(states("rprop", "{}") == std::vector<std::string>{"prev", "step_size"});
}

TEST_CASE("rprop: steps grow while the sign stays, and shrink without a step where it changes") {
  const OptimizerType& type = row(optimizer_table(), "rprop");
  const std::any options = settings(type, "{lr: 1, etas: [0.5, 2], step_sizes: [0.1, 3]}");
  double weight = 0, prev = 0, size = 0;
  int64_t t = 0;
  const auto step = [&](double gradient, double rate) {
    const OptimizerStep scalars = type.step(options, ++t, rate, {});
    formula::rprop(std::get<formula::Rprop<double>>(scalars), weight, prev, size, gradient);
    return weight;
  };
  CHECK(step(5, 1) == -1);      // the first step's size is lr
  CHECK(step(0.1, 9) == -3);    // twice that, whatever a schedule says now
  CHECK(step(0.1, 9) == -6);    // no more than the largest size
  CHECK(step(-1, 9) == -6);     // the sign changes: half the size, no step
  CHECK(step(-1, 9) == -4.5);   // the gradient before counts as 0: the size stays
  CHECK(step(0, 9) == -4.5);    // no sign, no step
  CHECK(step(NAN, 9) == -4.5);  // as in PyTorch, whose sign of nan is 0
  CHECK(size == 1.5);
}

TEST_CASE("rprop: the first step has the rate of a warm-up, within the sizes") {
  const OptimizerType& type = row(optimizer_table(), "rprop");
  for (const auto& [rate, first] : {std::pair{0.01, 0.01}, {1e-9, 1e-6}, {100.0, 50.0}}) {
    double weight = 0, prev = 0, size = 0;
    const OptimizerStep scalars = type.step(settings(type, "{lr: 1}"), 1, rate, {});
    formula::rprop(std::get<formula::Rprop<double>>(scalars), weight, prev, size, 1.0);
    CHECK(weight == -first);
    CHECK(size == first);
  }
}

TEST_CASE("rprop: checks and torch text") {
  for (const char* etas : {"0.5", "[0.5]", "[0, 1.2]", "[1, 1.2]", "[0.5, 1]"})
    CHECK(optimizer_complaints("rprop", "{etas: " + std::string(etas) + "}")
              .find("test.yaml:1:8: error: 'etas' must be") == 0);
  for (const char* sizes : {"1", "[1, 0.1]", "[1, 2, 3]"})
    CHECK(optimizer_complaints("rprop", "{step_sizes: " + std::string(sizes) + "}")
              .find("test.yaml:1:14: error: 'step_sizes' must be") == 0);
  CHECK(optimizer_complaints("rprop", "{step_sizes: [-1, 1]}").find("must not be negative") !=
        std::string::npos);
  CHECK(optimizer_complaints("rprop", "{weight_decay: 0.1}").find("weight_decay") !=
        std::string::npos);
  CHECK(optimizer_text("rprop", "{}") == "optim.Rprop(model.parameters(), lr=0.01)");
  CHECK(optimizer_text("rprop", "{etas: [0.4, 1.1], maximize: true}") ==
        "optim.Rprop(model.parameters(), lr=0.01, etas=[0.4, 1.1], maximize=True)");
}

}  // namespace
}  // namespace dpt::optim_test
