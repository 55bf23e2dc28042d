#include "optim/optimizers/golden.h"

namespace dpt::optim_test {
namespace {

TEST_CASE("adagrad: 1001 steps as torch") { CHECK(check_golden_optimizer("adagrad") == 4); }

TEST_CASE("adagrad: its sums start where they are told to") {
  const OptimizerType& type = row(optimizer_table(), "adagrad");
  CHECK(states("adagrad", "{}") == std::vector<std::string>{"sum"});
  CHECK(type.initial_state(settings(type, "{initial_accumulator_value: 0.1}")) == 0.1);
  CHECK(type.initial_state(settings(type, "{}")) == 0);
}

TEST_CASE("adagrad: checks and torch text") {
  CHECK(optimizer_complaints("adagrad", "{lr_decay: -0.1}").find("must not be negative") !=
        std::string::npos);
  CHECK(optimizer_text("adagrad", "{}") == "optim.Adagrad(model.parameters(), lr=0.01)");
  CHECK(optimizer_text("adagrad", "{lr_decay: 0.1, maximize: true}") ==
        "optim.Adagrad(model.parameters(), lr=0.01, lr_decay=0.1, maximize=True)");
}

}  // namespace
}  // namespace dpt::optim_test
