#include <limits>

#include <doctest/doctest.h>

#include "graph/operators/run.h"

namespace dpt {

TEST_CASE("multi_margin_loss is torch's") {
  const std::vector<Given> in = {
      {f64({2, 3}), {1, 0.5, -2, 0, 0, 3}}, {i32({2}), {0, 1}}, {f64({1}), {2}}};
  // Distances above 0: 0.5; 1 and 4.
  CHECK(close(run_op("multi_margin_loss", in, MultiMargin{}), {(0.5 + 1 + 4) / 3 / 2}));
  CHECK(close(run_op("multi_margin_loss_gradient", in, MultiMargin{}),
              {-1 / 6.0, 1 / 6.0, 0, 1 / 6.0, -2 / 6.0, 1 / 6.0}));
  const MultiMargin square{.p = 2, .margin = 1};
  CHECK(close(run_op("multi_margin_loss", in, square), {(0.25 + 1 + 16) / 3 / 2}));
  CHECK(close(run_op("multi_margin_loss_gradient", in, square),
              {-1 / 6.0, 1 / 6.0, 0, 2 / 6.0, -10 / 6.0, 8 / 6.0}));
}

TEST_CASE("multi_margin_loss: the weight of the target's class multiplies a sample") {
  const std::vector<Given> in = {
      {f64({2, 2}), {0, 0, 0, 0}}, {i32({2}), {0, 1}}, {f64({1}), {1}}, {f64({2}), {3, 0.5}}};
  CHECK(close(run_op("multi_margin_loss", in, MultiMargin{}), {(3 + 0.5) / 2}));
  CHECK(close(run_op("multi_margin_loss_gradient", in, MultiMargin{}), {-1.5, 1.5, 0.25, -0.25}));
}

TEST_CASE("multi_margin_loss: a distance of 0 and a single class cost nothing") {
  const std::vector<Given> at_margin = {{f64({1, 2}), {1, 0}}, {i32({1}), {0}}, {f64({1}), {1}}};
  CHECK(close(run_op("multi_margin_loss_gradient", at_margin, MultiMargin{}), {0, 0}));
  const std::vector<Given> single = {{f64({1, 1}), {5}}, {i32({1}), {0}}, {f64({1}), {1}}};
  CHECK(close(run_op("multi_margin_loss", single, MultiMargin{}), {0}));
}

TEST_CASE("multi_margin_loss of lists of labels compares them with the other classes") {
  // Labels 2 and 0 of the first sample, none of the second.
  const std::vector<Given> in = {
      {f64({2, 3}), {0.5, 1, 2, 1, 2, 3}}, {i32({2, 3}), {2, 0, -1, -1, 0, 1}}, {f64({1}), {2}}};
  CHECK(close(run_op("multi_margin_loss", in, MultiMargin{}), {(1 - 0.5 + 1) / 3 / 2}));
  CHECK(close(run_op("multi_margin_loss_gradient", in, MultiMargin{}),
              {-1.0 / 6, 1.0 / 6, 0, 0, 0, 0}));
}

TEST_CASE("multi_margin_loss refuses other shapes") {
  CHECK(refusal("multi_margin_loss", {f32({4, 3, 2}), i32({4}), f32({1})}) ==
        "multi_margin_loss: output f32[4, 3, 2] must be [N, C]");
  CHECK(refusal("multi_margin_loss", {f32({4, 3}), f32({4, 3}), f32({1})}) ==
        "multi_margin_loss: output f32[4, 3] needs classes i32[4] as targets, not f32[4, 3]");
  CHECK(refusal("multi_margin_loss", {f32({4, 3}), i32({4}), f32({1}), f32({2})}) ==
        "multi_margin_loss: weight [2] does not fit the 3 classes of output f32[4, 3]");
}

}  // namespace dpt
