#include <doctest/doctest.h>

#include "graph/attrs.h"
#include "layers/lowered.h"

namespace dpt {

TEST_CASE("dice_loss takes scores and classes") {
  CHECK(lowered_loss("dice_loss", real({4, 3, 5, 6}), numbers({4, 5, 6})) ==
        "loss.softmax f32[4, 3, 5, 6] = softmax(input)\n"
        "loss.dice_loss f64[1] = dice_loss(loss.softmax, target, divisor)\n"
        "loss.count_correct f64[1] = count_correct(input, target)\n");
  CHECK(complaint(lowered_loss("dice_loss", real({4, 3}), real({4, 3}))) ==
        "error: dice_loss takes class numbers, but the targets are real numbers f32[4, 3]; "
        "sigmoid_dice_loss takes a number for each output");
  CHECK(
      complaint(lowered_loss("dice_loss", real({4, 3, 5}), numbers({4}))) ==
      "error: dice_loss: the model's output is [4, 3, 5], so the targets must be [4, 5], not [4]; "
      "is a flatten missing before the first linear?");
  CHECK(complaint(lowered_loss("{dice_loss: 0}", real({4, 3}), numbers({4}))) ==
        "error: 'smooth' must be positive");
}

TEST_CASE("dice_loss is the mean over samples and channels") {
  CHECK(divisor_word("dice_loss") == Divisor::samples);
  CHECK(divisor_word("{dice_loss: {reduction: sum}}") == Divisor::one);
  const auto share = [](const std::string& loss) {
    ModelText text("model: [identity]", loss);
    const Graph graph = build_graph(
        text.spec, {.input = real({4, 5}), .target = numbers({4}), .differentiate = false},
        text.diagnostics);
    return std::any_cast<const Dice&>(graph.nodes.at(1).attrs).share;
  };
  CHECK(share("dice_loss") == 0.2);
  CHECK(share("{dice_loss: {reduction: sum}}") == 1);
}

TEST_CASE("dice_loss as PyTorch") {
  CHECK(torch_loss("dice_loss") == "DiceLoss()");
  CHECK(torch_loss("{dice_loss: {smooth: 1, reduction: sum}}") ==
        "DiceLoss(smooth=1.0, reduction=\"sum\")");
}

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
