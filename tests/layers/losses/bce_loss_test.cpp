#include <doctest/doctest.h>

#include "graph/attrs.h"
#include "layers/lowered.h"

namespace dpt {

TEST_CASE("bce_loss compares values of one shape") {
  CHECK(lowered_loss("bce_loss", real({4, 3}), real({4, 3})) ==
        "loss.bce_loss f64[1] = bce_loss(input, target, divisor)\n");
  CHECK(complaint(lowered_loss("bce_loss", real({4, 3}), real({4, 1}))) ==
        "error: bce_loss: the model's output is [4, 3], but the targets are [4, 1]");
  CHECK(complaint(lowered_loss("bce_loss", real({4, 3}), numbers({4}))) ==
        "error: bce_loss takes real numbers, but the targets are class numbers i32[4]: add "
        "`target_transforms: [one_hot]`, or store them as float32 if they are not classes");
}

TEST_CASE("bce_loss as PyTorch") {
  CHECK(torch_loss("bce_loss") == "nn.BCELoss()");
  CHECK(torch_loss("{bce_loss: sum}") == "nn.BCELoss(reduction=\"sum\")");
}

TEST_CASE("bce_loss weighs the outputs") {
  const char* const weighted = "{bce_loss: {weight: [1, 0.5, 2]}}";
  CHECK(lowered_loss(weighted, real({4, 3}), real({4, 3})) ==
        "loss.bce_loss f64[1] = bce_loss(input, target, divisor, loss.weight)\n");
  CHECK(complaint(lowered_loss(weighted, real({4, 2}), real({4, 2}))) ==
        "error: bce_loss: 'weight' has 3 numbers, but there are 2 outputs");
  CHECK(torch_loss(weighted) ==
        "nn.BCELoss(weight=torch.tensor([1.0, 0.5, 2.0], dtype=torch.float32))");
}

}  // namespace dpt
