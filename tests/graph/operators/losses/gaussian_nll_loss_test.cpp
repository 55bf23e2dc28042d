#include <cmath>

#include <doctest/doctest.h>

#include "graph/formulas/losses/gaussian_nll.h"
#include "graph/operators/run.h"

namespace dpt {

TEST_CASE("gaussian_nll_loss is the negative log-likelihood of normal distributions") {
  // Two samples: means 1 and 0, variances 4 and 0.25, targets 3 and 0.
  const std::vector<Given> in = {
      {f64({2, 2}), {1, 4, 0, 0.25}}, {f64({2, 1}), {3, 0}}, {f64({1}), {2}}};
  CHECK(close(run_op("gaussian_nll_loss", in, formula::GaussianNll{}),
              {(std::log(4) + 1 + std::log(0.25)) / 2 / 2}));
  CHECK(close(run_op("gaussian_nll_loss_gradient", in, formula::GaussianNll{}), {-0.25, 0, 0, 1}));
  // The same variances by their logarithms; their slopes are multiplied by the variances.
  const std::vector<Given> logarithms = {
      {f64({2, 2}), {1, std::log(4), 0, std::log(0.25)}}, in[1], in[2]};
  CHECK(close(
      run_op("gaussian_nll_loss_gradient", logarithms, formula::GaussianNll{.log_variance = true}),
      {-0.25, 0, 0, 0.25}));
}

TEST_CASE("gaussian_nll_loss refuses other shapes") {
  CHECK(refusal("gaussian_nll_loss", {f32({2, 3}), f32({2, 1}), f32({1})}) ==
        "gaussian_nll_loss: output f32[2, 3] must have twice as many channels as the targets "
        "f32[2, 1]");
}

}  // namespace dpt
