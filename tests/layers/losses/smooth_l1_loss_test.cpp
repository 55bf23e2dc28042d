#include <doctest/doctest.h>

#include "graph/attrs.h"
#include "layers/lowered.h"

namespace dpt {

TEST_CASE("smooth_l1_loss compares values of one shape") {
  CHECK(lowered_loss("smooth_l1_loss", real({4, 3}), real({4, 3})) ==
        "loss.smooth_l1_loss f64[1] = smooth_l1_loss(input, target, divisor)\n");
  CHECK(complaint(lowered_loss("smooth_l1_loss", real({4, 3}), real({4, 1}))) ==
        "error: smooth_l1_loss: the model's output is [4, 3], but the targets are [4, 1]");
  CHECK(complaint(lowered_loss("smooth_l1_loss", real({4, 3}), numbers({4}))) ==
        "error: smooth_l1_loss takes real numbers, but the targets are class numbers i32[4]: add "
        "`target_transforms: [one_hot]`, or store them as float32 if they are not classes");
}

TEST_CASE("smooth_l1_loss as PyTorch") {
  CHECK(torch_loss("smooth_l1_loss") == "nn.SmoothL1Loss()");
  CHECK(torch_loss("{smooth_l1_loss: sum}") == "nn.SmoothL1Loss(reduction=\"sum\")");
  CHECK(torch_loss("{smooth_l1_loss: {beta: 0.25}}") == "nn.SmoothL1Loss(beta=0.25)");
}

TEST_CASE("smooth_l1_loss may have beta 0, which is l1_loss") {
  CHECK(torch_loss("{smooth_l1_loss: {beta: 0}}") == "nn.SmoothL1Loss(beta=0.0)");
  CHECK(complaint(lowered_loss("{smooth_l1_loss: {beta: -1}}", real({4}), real({4}))) ==
        "error: 'beta' must not be negative");
}

}  // namespace dpt
