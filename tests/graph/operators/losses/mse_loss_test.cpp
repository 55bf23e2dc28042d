#include <doctest/doctest.h>

#include "graph/operators/run.h"

namespace dpt {

TEST_CASE("mse_loss is torch's, over the divisor") {
  const std::vector<Numbers> in = {
      {f64({1, 5}), {0, 0.25, -0.5, 2, -3}}, {f64({1, 5}), {0, 0, 0, 0, 0}}, {f64({1}), {5}}};
  CHECK(close(run_op("mse_loss", in), {13.3125 / 5}));
  CHECK(close(run_op("mse_loss_gradient", in), {0, 0.1, -0.2, 0.8, -1.2}));
}

TEST_CASE("mse_loss refuses targets of another shape and helps with classes") {
  CHECK(refusal("mse_loss", {f32({4, 3}), f32({4, 1}), f32({1})}) ==
        "mse_loss: output f32[4, 3] needs targets f32[4, 3], not f32[4, 1]");
  CHECK(refusal("mse_loss", {f32({4, 3}), i32({4}), f32({1})}) ==
        "mse_loss: output f32[4, 3] needs targets f32[4, 3], not i32[4]; class numbers become such "
        "targets by target_transforms: [one_hot]");
}

}  // namespace dpt
