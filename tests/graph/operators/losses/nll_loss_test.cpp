#include <cmath>

#include <doctest/doctest.h>

#include "graph/operators/run.h"

namespace dpt {

TEST_CASE("nll_loss is torch's with weights") {
  const std::vector<Given> in = {{f64({2, 3}), {-1, -2, -0.5, -3, -0.1, -2}},
                                 {i32({2}), {2, 1}},
                                 {f64({1}), {2.5}},
                                 {f64({3}), {1, 2, 0.5}}};
  CHECK(close(run_op("nll_loss", in, NllLoss{}), {0.18}));
  CHECK(close(run_op("nll_loss_gradient", in, NllLoss{}), {0, 0, -0.2, 0, -0.8, 0}));
}

TEST_CASE("nll_loss leaves ignored targets out") {
  const std::vector<Given> in = {
      {f64({2, 2}), {-1, -2, -3, -4}}, {i32({2}), {1, 0}}, {f64({1}), {1}}};
  CHECK(run_op("nll_loss", in, NllLoss{.ignore_index = 0}) == std::vector<double>{2});
  CHECK(run_op("nll_loss_gradient", in, NllLoss{.ignore_index = 0}) ==
        std::vector<double>{0, -1, 0, 0});
}

TEST_CASE("nll_loss has the factor of focal_loss") {
  const double log_half = std::log(0.5);
  const std::vector<Given> in = {
      {f64({2, 2}), {log_half, log_half, 0, -50}}, {i32({2}), {1, 0}}, {f64({1}), {1}}};
  CHECK(close(run_op("nll_loss", in, NllLoss{.gamma = 2}), {-log_half / 4}));
  // (1 - p)^2 (-1 + 2 p x / (1 - p)); the certain target costs nothing, whatever gamma.
  CHECK(close(run_op("nll_loss_gradient", in, NllLoss{.gamma = 2}),
              {0, (-1 + 2 * log_half) / 4, 0, 0}));
  CHECK(close(run_op("nll_loss_gradient", in, NllLoss{.gamma = 0.5}),
              {0, std::sqrt(0.5) * (-1 + 0.5 * log_half), 0, 0}));
  CHECK(label_of(op("nll_loss"), NllLoss{.gamma = 2}) == "nll_loss{focal}");
}

TEST_CASE("nll_loss refuses targets that are no classes") {
  CHECK(refusal("nll_loss", {f32({4, 3}), f32({4, 3}), f32({1})}) ==
        "nll_loss: output f32[4, 3] needs classes i32[4] as targets, not f32[4, 3]");
}

}  // namespace dpt
