#include "optim/optimizers/golden.h"

namespace dpt::optim_test {
namespace {

const formula::Asgd<double>& asgd_scalars(const OptimizerStep& step) {
  return std::get<formula::Asgd<double>>(step);
}

TEST_CASE("asgd: 1001 steps as torch, also by a schedule") {
  CHECK(check_golden_optimizer("asgd") == 5);
}

TEST_CASE("asgd: its state, and whether it is used") {
  CHECK(states("asgd", "{}") == std::vector<std::string>{"ax"});
  const OptimizerType& type = row(optimizer_table(), "asgd");
  CHECK(type.average_state(settings(type, "{}")) == -1);
  CHECK(type.average_state(settings(type, "{average: true}")) == 0);
  CHECK(row(optimizer_table(), "sgd").average_state(settings(type, "{}")) == -1);
}

TEST_CASE("asgd: steps become smaller, and the average begins after t0") {
  const OptimizerType& type = row(optimizer_table(), "asgd");
  CHECK(type.uses_previous_lr);
  const std::any options = settings(type, "{lambd: 0.5, alpha: 2, t0: 3}");
  const auto at = [&](int64_t t) { return asgd_scalars(type.step(options, t, 0.5, {})); };
  CHECK(at(1).eta == 0.5);
  CHECK(at(1).keep == 0.75);
  CHECK(at(5).eta == 0.125);  // 0.5 / (1 + 0.5 * 0.5 * 4)^2
  CHECK(at(5).keep == 1 - 0.5 * 0.125);
  for (const int64_t t : {1, 2, 4, 5}) CHECK(at(t).mu == 1);
  CHECK(type.averages_after(options) == 5);
  CHECK(at(6).mu == 0.5);
  CHECK(at(104).mu == 0.01);
}

TEST_CASE("asgd: checks and torch text") {
  for (const char* key : {"lr", "lambd", "alpha", "t0", "weight_decay"})
    CHECK(optimizer_complaints("asgd", "{" + std::string(key) + ": -1}")
              .find("must not be negative") != std::string::npos);
  CHECK(optimizer_text("asgd", "{}") == "optim.ASGD(model.parameters(), lr=0.01)");
  CHECK(optimizer_text("asgd", "{t0: 100, lambd: 0.5, average: true}") ==
        "optim.ASGD(model.parameters(), lr=0.01, lambd=0.5, t0=100.0)");
}

}  // namespace
}  // namespace dpt::optim_test
