#include <doctest/doctest.h>

#include "graph/operators/run.h"

namespace dpt {

TEST_CASE("bce_with_logits_loss is torch's, with both weights and far out") {
  const std::vector<Numbers> in = {{f64({1, 5}), {0, 100, -100, 0.5, -2}},
                                   {f64({1, 5}), {0, 1, 1, 0.25, 1}},
                                   {f64({1}), {1}},
                                   {f64({5}), {1, 2, 1, 0.5, 1}},
                                   {f64({5}), {3, 1, 1, 2, 0.5}}};
  const BceWithLogits attrs{.weight = true, .pos_weight = true};
  CHECK(close(run_op("bce_with_logits_loss", in, attrs), {102.24040930119399}));
  CHECK(close(run_op("bce_with_logits_loss_gradient", in, attrs),
              {0.5, 0, -1, 0.1390370820011591, -0.4403985389889412}));
}

TEST_CASE("bce_with_logits_loss refuses targets of another shape and helps with classes") {
  CHECK(refusal("bce_with_logits_loss", {f32({4, 3}), f32({4, 1}), f32({1})}) ==
        "bce_with_logits_loss: output f32[4, 3] needs targets f32[4, 3], not f32[4, 1]");
  CHECK(refusal("bce_with_logits_loss", {f32({4, 3}), i32({4}), f32({1})}) ==
        "bce_with_logits_loss: output f32[4, 3] needs targets f32[4, 3], not i32[4]; class numbers "
        "become such "
        "targets by target_transforms: [one_hot]");
}

}  // namespace dpt
