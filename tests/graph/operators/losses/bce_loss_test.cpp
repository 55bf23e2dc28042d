#include <doctest/doctest.h>

#include "graph/operators/run.h"

namespace dpt {

TEST_CASE("bce_loss is torch's, also at 0 and 1") {
  const std::vector<Numbers> in = {
      {f64({1, 5}), {0, 1, 0.25, 0.9, 1e-30}}, {f64({1, 5}), {0, 1, 0.5, 0, 1}}, {f64({1}), {1}}};
  CHECK(close(run_op("bce_loss", in), {72.21712609960126}));
  CHECK(close(run_op("bce_loss_gradient", in), {0, 0, -1.333333333333333, 10, -1000000003995.803}));
}

TEST_CASE("bce_loss weighs the elements of each sample") {
  const std::vector<Numbers> in = {{f64({2, 2}), {0.5, 0.5, 0.5, 0.5}},
                                   {f64({2, 2}), {1, 1, 0, 0}},
                                   {f64({1}), {2}},
                                   {f64({2}), {1, 3}}};
  CHECK(close(run_op("bce_loss", in), {4 * std::log(2)}));
  CHECK(close(run_op("bce_loss_gradient", in), {-1, -3, 1, 3}));
}

TEST_CASE("bce_loss refuses targets of another shape and helps with classes") {
  CHECK(refusal("bce_loss", {f32({4, 3}), f32({4, 1}), f32({1})}) ==
        "bce_loss: output f32[4, 3] needs targets f32[4, 3], not f32[4, 1]");
  CHECK(refusal("bce_loss", {f32({4, 3}), i32({4}), f32({1})}) ==
        "bce_loss: output f32[4, 3] needs targets f32[4, 3], not i32[4]; class numbers become such "
        "targets by target_transforms: [one_hot]");
}

TEST_CASE("bce_loss refuses weights that fit no sample") {
  CHECK(refusal("bce_loss", {f32({4, 3}), f32({4, 3}), f32({1}), f32({4})}) ==
        "bce_loss: weights f32[4] do not fit the last extents of output f32[4, 3]");
}

}  // namespace dpt
