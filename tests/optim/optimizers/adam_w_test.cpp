#include "optim/optimizers/golden.h"

namespace dpt::optim_test {
namespace {

TEST_CASE("adam_w: 1001 steps as torch") { CHECK(check_golden_optimizer("adam_w") == 4); }

TEST_CASE("adam_w: the decay takes from the weights, by the rate of the step") {
  const OptimizerType& type = row(optimizer_table(), "adam_w");
  const OptimizerStep step = type.step(settings(type, "{}"), 1, 0.5, {});
  CHECK(std::get<formula::Adam<double>>(step).keep == 1 - 0.5 * 0.01);
  CHECK(std::get<formula::Adam<double>>(step).weight_decay == 0);
}

TEST_CASE("adam_w: checks and torch text") {
  CHECK(optimizer_complaints("adam_w", "{betas: [0.9]}").find("must be two numbers") !=
        std::string::npos);
  CHECK(optimizer_text("adam_w", "{}") == "optim.AdamW(model.parameters(), lr=0.001)");
  CHECK(optimizer_text("adam_w", "{weight_decay: 0.0}") ==
        "optim.AdamW(model.parameters(), lr=0.001, weight_decay=0.0)");
}

}  // namespace
}  // namespace dpt::optim_test
