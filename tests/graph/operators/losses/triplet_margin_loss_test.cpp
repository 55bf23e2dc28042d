#include <cmath>

#include <doctest/doctest.h>

#include "graph/operators/run.h"

namespace dpt {

TEST_CASE("triplet_margin_loss compares distances") {
  // Anchor 0, positive at distance 5, negative at distance 4.
  const std::vector<Given> in = {{f64({1, 3, 2}), {0, 0, 3, 4, 0, 4}}, {f64({1}), {1}}};
  const TripletMargin s{.margin = 1, .eps = 0};
  CHECK(close(run_op("triplet_margin_loss", in, s), {5 - 4 + 1.0}));
  CHECK(close(run_op("triplet_margin_loss_gradient", in, s), {-0.6, 0.2, 0.6, 0.8, 0, -1}));
  // The positive and the negative are only 3 apart.
  const TripletMargin swap{.margin = 1, .eps = 0, .swap = true};
  CHECK(close(run_op("triplet_margin_loss", in, swap), {5 - 3 + 1.0}));
  CHECK(close(run_op("triplet_margin_loss_gradient", in, swap), {-0.6, -0.8, -0.4, 0.8, 1, 0}));
  const TripletMargin far{.margin = 0.5, .eps = 0};
  const std::vector<Given> apart = {{f64({1, 3, 2}), {0, 0, 0, 1, 3, 4}}, {f64({1}), {1}}};
  CHECK(close(run_op("triplet_margin_loss", apart, far), {0}));
  CHECK(close(run_op("triplet_margin_loss_gradient", apart, far), {0, 0, 0, 0, 0, 0}));
}

TEST_CASE("triplet_margin_loss with p infinite compares the largest differences") {
  // As PyTorch: differences 1, 0, 1 and -2, 0, 2; equal ones share the slope.
  const std::vector<Given> in = {{f64({1, 3, 3}), {1, 2, 3, 0, 2, 2, 3, 2, 1}}, {f64({1}), {1}}};
  const TripletMargin s{.margin = 5, .p = INFINITY, .eps = 0};
  CHECK(close(run_op("triplet_margin_loss", in, s), {4}));
  CHECK(
      close(run_op("triplet_margin_loss_gradient", in, s), {1, 0, 0, -0.5, 0, -0.5, -0.5, 0, 0.5}));
  const std::vector<Given> nan = {{f64({1, 3, 2}), {0, 0, NAN, 1, 0, 1}}, {f64({1}), {1}}};
  CHECK(std::isnan(run_op("triplet_margin_loss", nan, s)[0]));
}

TEST_CASE("triplet_margin_loss refuses other shapes") {
  CHECK(refusal("triplet_margin_loss", {f32({2, 2, 4}), f32({1})}) ==
        "triplet_margin_loss: output f32[2, 2, 4] must be [N, 3, D]");
}

}  // namespace dpt
