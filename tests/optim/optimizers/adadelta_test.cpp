#include "optim/optimizers/golden.h"

namespace dpt::optim_test {
namespace {

TEST_CASE("adadelta: 1001 steps as torch") { CHECK(check_golden_optimizer("adadelta") == 3); }

TEST_CASE("adadelta: buffers, checks and torch text") {
  CHECK(states("adadelta", "{}") == std::vector<std::string>{"square_avg", "acc_delta"});
  CHECK(optimizer_complaints("adadelta", "{rho: 1.1}").find("between 0 and 1") !=
        std::string::npos);
  CHECK(optimizer_text("adadelta", "{}") == "optim.Adadelta(model.parameters(), lr=1.0)");
  CHECK(optimizer_text("adadelta", "{rho: 0.95, weight_decay: 0.01}") ==
        "optim.Adadelta(model.parameters(), lr=1.0, rho=0.95, weight_decay=0.01)");
}

}  // namespace
}  // namespace dpt::optim_test
