#include <doctest/doctest.h>

#include "graph/operators/run.h"

namespace dpt {

TEST_CASE("rms_norm and its gradients are torch's") {
  const Numbers x{f64({1, 4}), {1, -2, 0.5, 3}}, w{f64({4}), {1, 2, 3, 4}},
      dy{f64({1, 4}), {1, -1, 2, 0.5}};
  const RmsNorm attrs{.dims = 1, .eps = 0.1};
  CHECK(close(run_op("rms_norm", {x, w}, attrs),
              {0.5225299442731641, -2.0901197770926565, 0.7837949164097462, 6.2703593312779695}));
  const Numbers rstd{f64({1}), run_op("rms_norm", {x, w}, attrs, {}, 1)};
  CHECK(close(run_op("rms_norm_input_gradient", {dy, x, rstd, w}, attrs),
              {0.02318392244215406, -0.04636784488430812, 2.88550665472348, -0.45297817694670206}));
  CHECK(close(run_op("rms_norm_weight_gradient", {dy, x, rstd}, attrs),
              {0.5225299442731641, 1.0450598885463283, 0.5225299442731641, 0.7837949164097462}));
}

TEST_CASE("rms_norm refuses dimensions that are not there") {
  CHECK(refusal("rms_norm", {f32({2, 3})}, RmsNorm{.dims = 2}) ==
        "rms_norm: cannot normalize over the last 2 dimensions of [2, 3]");
  CHECK(refusal("rms_norm", {f32({2, 3}), f32({2})}, RmsNorm{.dims = 1}) ==
        "rms_norm: parameter [2] does not fit the last 1 dimensions of [2, 3]");
}

}  // namespace dpt
