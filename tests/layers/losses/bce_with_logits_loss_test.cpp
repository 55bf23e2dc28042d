#include <doctest/doctest.h>

#include "graph/attrs.h"
#include "layers/lowered.h"

namespace dpt {

TEST_CASE("bce_with_logits_loss compares values of one shape") {
  CHECK(lowered_loss("bce_with_logits_loss", real({4, 3}), real({4, 3})) ==
        "loss.bce_with_logits_loss f64[1] = bce_with_logits_loss(input, target, divisor)\n");
  CHECK(complaint(lowered_loss("bce_with_logits_loss", real({4, 3}), real({4, 1}))) ==
        "error: bce_with_logits_loss: the model's output is [4, 3], but the targets are [4, 1]");
  CHECK(complaint(lowered_loss("bce_with_logits_loss", real({4, 3}), numbers({4}))) ==
        "error: bce_with_logits_loss takes real numbers, but the targets are class numbers i32[4]: "
        "add "
        "`target_transforms: [one_hot]`, or store them as float32 if they are not classes");
}

TEST_CASE("bce_with_logits_loss as PyTorch") {
  CHECK(torch_loss("bce_with_logits_loss") == "nn.BCEWithLogitsLoss()");
  CHECK(torch_loss("{bce_with_logits_loss: sum}") == "nn.BCEWithLogitsLoss(reduction=\"sum\")");
}

TEST_CASE("bce_with_logits_loss weighs the outputs and the positive targets") {
  const char* const both = "{bce_with_logits_loss: {pos_weight: [3, 4], weight: [1, 2]}}";
  CHECK(lowered_loss(both, real({4, 2}), real({4, 2})) ==
        "loss.bce_with_logits_loss f64[1] = bce_with_logits_loss(input, target, divisor, "
        "loss.weight, loss.pos_weight)\n");
  CHECK(lowered_loss("{bce_with_logits_loss: {pos_weight: [3, 4]}}", real({4, 2}), real({4, 2})) ==
        "loss.bce_with_logits_loss f64[1] = bce_with_logits_loss(input, target, divisor, "
        "loss.pos_weight)\n");
  CHECK(torch_loss(both) ==
        "nn.BCEWithLogitsLoss(weight=torch.tensor([1.0, 2.0], dtype=torch.float32), "
        "pos_weight=torch.tensor([3.0, 4.0], dtype=torch.float32))");
}

}  // namespace dpt
