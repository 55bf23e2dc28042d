#include <cmath>

#include <doctest/doctest.h>

#include "graph/operators/run.h"

namespace dpt {

TEST_CASE("sigmoid_focal_loss is torchvision's") {
  const std::vector<Numbers> in = {
      {f64({3, 1}), {0, 0, 0}}, {f64({3, 1}), {1, 0, 0.5}}, {f64({1}), {1}}};
  // Every probability is 1/2: the factor is 1/4, the cross entropy log 2.
  const double term = std::log(2.0) / 4;
  CHECK(close(run_op("sigmoid_focal_loss", in, SigmoidFocal{}), {term * (0.25 + 0.75 + 0.5)}));
  CHECK(close(run_op("sigmoid_focal_loss", in, SigmoidFocal{.alpha = -1}), {3 * term}));
  // A positive target: (-1/2 - 2 log 2 / 2) / 4.
  CHECK(close(run_op("sigmoid_focal_loss_gradient", in, SigmoidFocal{.alpha = -1}),
              {-0.125 - term, 0.125 + term, 0}));
}

TEST_CASE("sigmoid_focal_loss without gamma is bce_with_logits_loss") {
  const std::vector<Numbers> in = {
      {f64({2, 2}), {-3, 1, 0.5, 4}}, {f64({2, 2}), {1, 0, 0.25, 1}}, {f64({1}), {4}}};
  const SigmoidFocal plain{.alpha = -1, .gamma = 0};
  CHECK(close(run_op("sigmoid_focal_loss", in, plain),
              run_op("bce_with_logits_loss", in, BceWithLogits{})));
  CHECK(close(run_op("sigmoid_focal_loss_gradient", in, plain),
              run_op("bce_with_logits_loss_gradient", in, BceWithLogits{})));
}

TEST_CASE("sigmoid_focal_loss is finite where the target is certain") {
  const std::vector<Numbers> in = {
      {f64({1, 4}), {800, -800, 800, -800}}, {f64({1, 4}), {1, 0, 0, 1}}, {f64({1}), {1}}};
  for (const double gamma : {0.0, 0.5, 2.0, 3.0}) {
    CAPTURE(gamma);
    const SigmoidFocal s{.alpha = -1, .gamma = gamma};
    CHECK(close(run_op("sigmoid_focal_loss", in, s), {1600}));
    CHECK(close(run_op("sigmoid_focal_loss_gradient", in, s), {0, 0, 1, -1}));
  }
}

TEST_CASE("sigmoid_focal_loss refuses other targets") {
  CHECK(refusal("sigmoid_focal_loss", {f32({4, 3}), f32({4, 1}), f32({1})}) ==
        "sigmoid_focal_loss: output f32[4, 3] needs targets f32[4, 3], not f32[4, 1]");
}

}  // namespace dpt
