#include <doctest/doctest.h>

#include "graph/operators/run.h"

namespace dpt {

TEST_CASE("l1_loss is torch's; its slope is zero where the output is right") {
  const std::vector<Numbers> in = {
      {f64({1, 5}), {0, 0.25, -0.5, 2, -3}}, {f64({1, 5}), {0, 0, 0, 0, 0}}, {f64({1}), {1}}};
  CHECK(close(run_op("l1_loss", in), {5.75}));
  CHECK(close(run_op("l1_loss_gradient", in), {0, 1, -1, 1, -1}));
}

TEST_CASE("l1_loss refuses targets of another shape and helps with classes") {
  CHECK(refusal("l1_loss", {f32({4, 3}), f32({4, 1}), f32({1})}) ==
        "l1_loss: output f32[4, 3] needs targets f32[4, 3], not f32[4, 1]");
  CHECK(refusal("l1_loss", {f32({4, 3}), i32({4}), f32({1})}) ==
        "l1_loss: output f32[4, 3] needs targets f32[4, 3], not i32[4]; class numbers become such "
        "targets by target_transforms: [one_hot]");
}

}  // namespace dpt
