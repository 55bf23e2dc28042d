#include <doctest/doctest.h>

#include "graph/operators/run.h"

namespace dpt {

TEST_CASE("soft_margin_loss is torch's") {
  const std::vector<Numbers> in = {
      {f64({1, 4}), {0, 1, -2, 0.5}}, {f64({1, 4}), {1, -1, -1, 1}}, {f64({1}), {1}}};
  // log(2) + log(1 + e) + log(1 + e^-2) + log(1 + e^-0.5)
  CHECK(close(run_op("soft_margin_loss", in, {}), {2.6074138633012476}));
  CHECK(close(run_op("soft_margin_loss_gradient", in, {}),
              {-0.5, 0.7310585786300049, 0.11920292202211755, -0.3775406687981454}));
}

TEST_CASE("soft_margin_loss of a large distance is finite, where torch's is not") {
  const std::vector<Numbers> in = {
      {f64({1, 2}), {-1000, 1000}}, {f64({1, 2}), {1, 1}}, {f64({1}), {1}}};
  CHECK(close(run_op("soft_margin_loss", in, {}), {1000}));
  CHECK(close(run_op("soft_margin_loss_gradient", in, {}), {-1, 0}));
}

TEST_CASE("soft_margin_loss refuses targets of another shape and helps with classes") {
  CHECK(refusal("soft_margin_loss", {f32({4, 3}), f32({4, 1}), f32({1})}) ==
        "soft_margin_loss: output f32[4, 3] needs targets f32[4, 3], not f32[4, 1]");
  CHECK(refusal("soft_margin_loss", {f32({4, 3}), i32({4}), f32({1})}) ==
        "soft_margin_loss: output f32[4, 3] needs targets f32[4, 3], not i32[4]; class numbers "
        "become such targets by target_transforms: [one_hot]");
}

}  // namespace dpt
