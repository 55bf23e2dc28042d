#include <doctest/doctest.h>

#include "graph/operators/run.h"

namespace dpt {

TEST_CASE("huber_loss is torch's") {
  const std::vector<Numbers> in = {
      {f64({1, 5}), {0, 0.25, -0.5, 2, -3}}, {f64({1, 5}), {0, 0, 0, 0, 0}}, {f64({1}), {1}}};
  CHECK(close(run_op("huber_loss", in, Huber{.delta = 0.5}), {2.40625}));
  CHECK(close(run_op("huber_loss_gradient", in, Huber{.delta = 0.5}), {0, 0.25, -0.5, 0.5, -0.5}));
}

TEST_CASE("huber_loss refuses targets of another shape and helps with classes") {
  CHECK(refusal("huber_loss", {f32({4, 3}), f32({4, 1}), f32({1})}) ==
        "huber_loss: output f32[4, 3] needs targets f32[4, 3], not f32[4, 1]");
  CHECK(
      refusal("huber_loss", {f32({4, 3}), i32({4}), f32({1})}) ==
      "huber_loss: output f32[4, 3] needs targets f32[4, 3], not i32[4]; class numbers become such "
      "targets by target_transforms: [one_hot]");
}

}  // namespace dpt
