#include <cmath>

#include <doctest/doctest.h>

#include "graph/operators/run.h"

namespace dpt {

TEST_CASE("poisson_nll_loss is torch's, of rates and of their logarithms") {
  const std::vector<Numbers> logs = {
      {f64({1, 3}), {0, 1, -1}}, {f64({1, 3}), {2, 1, 0}}, {f64({1}), {1}}};
  const double e = std::exp(1.0);
  CHECK(close(run_op("poisson_nll_loss", logs, PoissonNll{}), {1 + e - 1 + 1 / e}));
  CHECK(close(run_op("poisson_nll_loss_gradient", logs, PoissonNll{}), {-1, e - 1, 1 / e}));
  const std::vector<Numbers> rates = {
      {f64({1, 2}), {0, 2}}, {f64({1, 2}), {1, 4}}, {f64({1}), {1}}};
  const PoissonNll s{.log_input = false, .eps = 0.5};
  CHECK(close(run_op("poisson_nll_loss", rates, s), {std::log(2.0) + 2 - 4 * std::log(2.5)}));
  CHECK(close(run_op("poisson_nll_loss_gradient", rates, s), {-1, 1 - 4 / 2.5}));
}

TEST_CASE("poisson_nll_loss: full adds Stirling's approximation for targets above 1") {
  const std::vector<Numbers> in = {
      {f64({1, 3}), {0, 0, 0}}, {f64({1, 3}), {0, 1, 3}}, {f64({1}), {1}}};
  const double more = 3 * std::log(3.0) - 3 + 0.5 * std::log(6 * std::acos(-1.0));
  CHECK(close(run_op("poisson_nll_loss", in, PoissonNll{.full = true}), {3 + more}));
  CHECK(close(run_op("poisson_nll_loss_gradient", in, PoissonNll{.full = true}), {1, 0, -2}));
}

TEST_CASE("poisson_nll_loss refuses targets of another shape and helps with classes") {
  CHECK(refusal("poisson_nll_loss", {f32({4, 3}), f32({4, 1}), f32({1})}) ==
        "poisson_nll_loss: output f32[4, 3] needs targets f32[4, 3], not f32[4, 1]");
  CHECK(refusal("poisson_nll_loss", {f32({4, 3}), i32({4}), f32({1})}) ==
        "poisson_nll_loss: output f32[4, 3] needs targets f32[4, 3], not i32[4]; class numbers "
        "become such targets by target_transforms: [one_hot]");
}

}  // namespace dpt
