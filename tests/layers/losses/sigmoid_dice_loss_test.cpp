#include <doctest/doctest.h>

#include "graph/attrs.h"
#include "layers/lowered.h"

namespace dpt {

TEST_CASE("sigmoid_dice_loss takes logits and values of one shape") {
  CHECK(lowered_loss("sigmoid_dice_loss", real({4, 1, 5, 6}), real({4, 1, 5, 6})) ==
        "loss.sigmoid f32[4, 1, 5, 6] = sigmoid(input)\n"
        "loss.dice_loss f64[1] = dice_loss(loss.sigmoid, target, divisor)\n");
  CHECK(complaint(lowered_loss("sigmoid_dice_loss", real({4, 3}), real({4, 1}))) ==
        "error: sigmoid_dice_loss: the model's output is [4, 3], but the targets are [4, 1]");
  CHECK(complaint(lowered_loss("sigmoid_dice_loss", real({4}), real({4}))) ==
        "error: sigmoid_dice_loss takes outputs [N, C, ...], but the model's output is [4]");
}

TEST_CASE("sigmoid_dice_loss is the mean over samples and channels") {
  CHECK(divisor_word("sigmoid_dice_loss") == Divisor::samples);
  CHECK(divisor_word("{sigmoid_dice_loss: {reduction: sum}}") == Divisor::one);
}

TEST_CASE("sigmoid_dice_loss as PyTorch") {
  CHECK(torch_loss("sigmoid_dice_loss") == "SigmoidDiceLoss()");
  CHECK(torch_loss("{sigmoid_dice_loss: {smooth: 1, reduction: sum}}") ==
        "SigmoidDiceLoss(smooth=1.0, reduction=\"sum\")");
}

}  // namespace dpt
