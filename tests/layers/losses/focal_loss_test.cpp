#include <doctest/doctest.h>

#include "graph/attrs.h"
#include "layers/lowered.h"

namespace dpt {

TEST_CASE("focal_loss takes scores and classes, as cross_entropy does") {
  CHECK(lowered_loss("focal_loss", real({4, 3}), numbers({4})) ==
        "loss.log_softmax f32[4, 3] = log_softmax(input)\n"
        "loss.nll_loss f64[1] = nll_loss{focal}(loss.log_softmax, target, divisor)\n"
        "loss.count_correct f64[1] = count_correct(input, target)\n");
  CHECK(complaint(lowered_loss("focal_loss", real({4, 3}), numbers({5}))) ==
        "error: focal_loss: the model's output is [4, 3], so the targets must be [4], not [5]");
  CHECK(complaint(lowered_loss("{focal_loss: {weight: [1, 2]}}", real({4, 3}), numbers({4}))) ==
        "error: focal_loss: 'weight' has 2 numbers, but there are 3 classes");
  CHECK(complaint(lowered_loss("{focal_loss: -1}", real({4, 3}), numbers({4}))) ==
        "error: 'gamma' must not be negative");
}

TEST_CASE("focal_loss divides by the number of targets, whatever their weights") {
  CHECK(divisor_word("focal_loss") == Divisor::positions);
  CHECK(divisor_word("{focal_loss: {weight: [1, 2, 3]}}") == Divisor::positions);
  CHECK(divisor_word("{focal_loss: {ignore_index: 1}}") == Divisor::targets);
  CHECK(divisor_word("{focal_loss: {reduction: sum}}") == Divisor::one);
}

TEST_CASE("focal_loss as PyTorch") {
  CHECK(torch_loss("focal_loss") == "FocalLoss()");
  CHECK(torch_loss("{focal_loss: {gamma: 1.5, weight: [1, 2.5], reduction: sum}}") ==
        "FocalLoss(gamma=1.5, weight=torch.tensor([1.0, 2.5], dtype=torch.float32), "
        "reduction=\"sum\")");
}

}  // namespace dpt
