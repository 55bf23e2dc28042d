#include <doctest/doctest.h>

#include "graph/operators/run.h"

namespace dpt {

TEST_CASE("layer_norm is torch's and gives each row's mean and reciprocal deviation") {
  const std::vector<Numbers> in = {
      {f64({1, 4}), {1, 2, 4, 9}}, {f64({4}), {1, 2, 1, -1}}, {f64({4}), {0, 0, 1, 0.5}}};
  const LayerNorm attrs{.dims = 1, .eps = 1e-5};
  const double rstd = 1 / std::sqrt(9.5 + 1e-5);
  CHECK(close(run_op("layer_norm", in, attrs), {-3 * rstd, -4 * rstd, 1, -5 * rstd + 0.5}));
  CHECK(run_op("layer_norm", in, attrs, {}, 1) == std::vector<double>{4});
  CHECK(close(run_op("layer_norm", in, attrs, {}, 2), {rstd}));
}

TEST_CASE("layer_norm names what does not fit") {
  CHECK(refusal("layer_norm", {f32({8, 4})}, LayerNorm{.dims = 2}) ==
        "layer_norm: cannot normalize over the last 2 dimensions of [8, 4]");
  CHECK(refusal("layer_norm", {f32({8, 4}), f32({5})}, LayerNorm{}) ==
        "layer_norm: parameter [5] does not fit the last 1 dimensions of [8, 4]");
}

}  // namespace dpt
