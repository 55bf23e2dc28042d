#include <doctest/doctest.h>

#include "graph/operators/run.h"

namespace dpt {

TEST_CASE("layer_norm is torch's and gives each row's mean and reciprocal deviation") {
  const std::vector<Given> in = {
      {f64({1, 4}), {1, 2, 4, 9}}, {f64({4}), {1, 2, 1, -1}}, {f64({4}), {0, 0, 1, 0.5}}};
  const RowNorm attrs{.dims = 1, .eps = 1e-5};
  const double rstd = 1 / std::sqrt(9.5 + 1e-5);
  CHECK(close(run_op("layer_norm", in, attrs), {-3 * rstd, -4 * rstd, 1, -5 * rstd + 0.5}));
  CHECK(run_op("layer_norm", in, attrs, {}, 1) == std::vector<double>{4});
  CHECK(close(run_op("layer_norm", in, attrs, {}, 2), {rstd}));
}

TEST_CASE("layer_norm names what does not fit") {
  CHECK(refusal("layer_norm", {f32({8, 4})}, RowNorm{.dims = 2}) ==
        "layer_norm: cannot normalize over the last 2 dimensions of [8, 4]");
  CHECK(refusal("layer_norm", {f32({8, 4}), f32({5})}, RowNorm{}) ==
        "layer_norm: parameter [5] does not fit the last 1 dimensions of [8, 4]");
}

TEST_CASE("rms_norm and its gradients are torch's") {
  const Given x{f64({1, 4}), {1, -2, 0.5, 3}}, w{f64({4}), {1, 2, 3, 4}},
      dy{f64({1, 4}), {1, -1, 2, 0.5}};
  const RowNorm attrs{.center = false, .eps = 0.1};
  CHECK(close(run_op("rms_norm", {x, w}, attrs),
              {0.5225299442731641, -2.0901197770926565, 0.7837949164097462, 6.2703593312779695}));
  const Given rstd{f64({1}), run_op("rms_norm", {x, w}, attrs, {}, 1)};
  CHECK(close(run_op("rms_norm_input_gradient", {dy, x, rstd, w}, attrs),
              {0.02318392244215406, -0.04636784488430812, 2.88550665472348, -0.45297817694670206}));
  CHECK(close(run_op("rms_norm_weight_gradient", {dy, x, rstd}, attrs),
              {0.5225299442731641, 1.0450598885463283, 0.5225299442731641, 0.7837949164097462}));
}

TEST_CASE("rms_norm refuses dimensions that are not there") {
  CHECK(refusal("rms_norm", {f32({2, 3})}, RowNorm{.dims = 2, .center = false}) ==
        "rms_norm: cannot normalize over the last 2 dimensions of [2, 3]");
  CHECK(refusal("rms_norm", {f32({2, 3}), f32({2})}, RowNorm{.center = false}) ==
        "rms_norm: parameter [2] does not fit the last 1 dimensions of [2, 3]");
}

TEST_CASE("group_norm normalises each group of channels of each sample") {
  const std::vector<Given> in = {
      {f64({1, 2, 2}), {1, 2, 4, 9}}, {f64({2}), {1, 2}}, {f64({2}), {0, 1}}};
  const double rstd = 1 / std::sqrt(9.5 + 1e-5);
  CHECK(close(run_op("group_norm", in, RowNorm{.groups = 1}),
              {-3 * rstd, -2 * rstd, 1, 10 * rstd + 1}));
  CHECK(run_op("group_norm", in, RowNorm{.groups = 1}, {}, 1) == std::vector<double>{4});
  CHECK(close(run_op("group_norm", in, RowNorm{.groups = 1}, {}, 2), {rstd}));
  CHECK(run_op("group_norm", in, RowNorm{.groups = 2}, {}, 1) == std::vector<double>{1.5, 6.5});
}

TEST_CASE("group_norm names what does not fit") {
  CHECK(refusal("group_norm", {f32({8, 4})}, RowNorm{.groups = 3}) ==
        "group_norm: the channels of [8, 4] cannot be split into 3 groups");
  CHECK(refusal("group_norm", {f32({8, 4}), f32({2}), f32({2})}, RowNorm{.groups = 2}) ==
        "group_norm: parameter [2] does not fit the channels of [8, 4]");
}

}  // namespace dpt
