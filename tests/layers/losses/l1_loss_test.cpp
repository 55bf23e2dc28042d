#include <doctest/doctest.h>

#include "graph/attrs.h"
#include "layers/lowered.h"

namespace dpt {

TEST_CASE("l1_loss compares values of one shape") {
  CHECK(lowered_loss("l1_loss", real({4, 3}), real({4, 3})) ==
        "loss.l1_loss f64[1] = l1_loss(input, target, divisor)\n");
  CHECK(complaint(lowered_loss("l1_loss", real({4, 3}), real({4, 1}))) ==
        "error: l1_loss: the model's output is [4, 3], but the targets are [4, 1]");
  CHECK(complaint(lowered_loss("l1_loss", real({4, 3}), numbers({4}))) ==
        "error: l1_loss takes real numbers, but the targets are class numbers i32[4]: add "
        "`target_transforms: [one_hot]`, or store them as float32 if they are not classes");
}

TEST_CASE("l1_loss as PyTorch") {
  CHECK(torch_loss("l1_loss") == "nn.L1Loss()");
  CHECK(torch_loss("{l1_loss: sum}") == "nn.L1Loss(reduction=\"sum\")");
}

}  // namespace dpt
