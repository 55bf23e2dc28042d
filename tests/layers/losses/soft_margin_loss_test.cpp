#include <doctest/doctest.h>

#include "graph/attrs.h"
#include "layers/lowered.h"

namespace dpt {

TEST_CASE("soft_margin_loss compares values of one shape") {
  CHECK(lowered_loss("soft_margin_loss", real({4, 3}), real({4, 3})) ==
        "loss.soft_margin_loss f64[1] = soft_margin_loss(input, target, divisor)\n");
  CHECK(complaint(lowered_loss("soft_margin_loss", real({4, 3}), real({4, 1}))) ==
        "error: soft_margin_loss: the model's output is [4, 3], but the targets are [4, 1]");
  CHECK(complaint(lowered_loss("soft_margin_loss", real({4, 3}), numbers({4}))) ==
        "error: soft_margin_loss takes real numbers, but the targets are class numbers i32[4]: add "
        "`target_transforms: [one_hot]`, or store them as float32 if they are not classes");
}

TEST_CASE("soft_margin_loss as PyTorch") {
  CHECK(torch_loss("soft_margin_loss") == "nn.SoftMarginLoss()");
  CHECK(torch_loss("{soft_margin_loss: sum}") == "nn.SoftMarginLoss(reduction=\"sum\")");
}

}  // namespace dpt
