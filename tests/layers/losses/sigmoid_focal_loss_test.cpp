#include <doctest/doctest.h>

#include "graph/attrs.h"
#include "layers/lowered.h"

namespace dpt {

TEST_CASE("sigmoid_focal_loss compares values of one shape") {
  CHECK(lowered_loss("sigmoid_focal_loss", real({4, 3}), real({4, 3})) ==
        "loss.sigmoid_focal_loss f64[1] = sigmoid_focal_loss(input, target, divisor)\n");
  CHECK(complaint(lowered_loss("sigmoid_focal_loss", real({4, 3}), real({4, 1}))) ==
        "error: sigmoid_focal_loss: the model's output is [4, 3], but the targets are [4, 1]");
  CHECK(complaint(lowered_loss("{sigmoid_focal_loss: 2}", real({4, 3}), real({4, 3}))) ==
        "error: 'alpha' must be between 0 and 1, or -1");
}

TEST_CASE("sigmoid_focal_loss divides by the elements") {
  CHECK(divisor_word("sigmoid_focal_loss") == Divisor::elements);
  CHECK(divisor_word("{sigmoid_focal_loss: {reduction: sum}}") == Divisor::one);
}

TEST_CASE("sigmoid_focal_loss as PyTorch") {
  CHECK(torch_loss("sigmoid_focal_loss") == "SigmoidFocalLoss()");
  CHECK(torch_loss("{sigmoid_focal_loss: {alpha: -1, gamma: 1.5, reduction: sum}}") ==
        "SigmoidFocalLoss(alpha=-1.0, gamma=1.5, reduction=\"sum\")");
}

}  // namespace dpt
