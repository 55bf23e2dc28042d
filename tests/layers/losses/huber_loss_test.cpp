#include <doctest/doctest.h>

#include "graph/attrs.h"
#include "layers/lowered.h"

namespace dpt {

TEST_CASE("huber_loss compares values of one shape") {
  CHECK(lowered_loss("huber_loss", real({4, 3}), real({4, 3})) ==
        "loss.huber_loss f64[1] = huber_loss(input, target, divisor)\n");
  CHECK(complaint(lowered_loss("huber_loss", real({4, 3}), real({4, 1}))) ==
        "error: huber_loss: the model's output is [4, 3], but the targets are [4, 1]");
  CHECK(complaint(lowered_loss("huber_loss", real({4, 3}), numbers({4}))) ==
        "error: huber_loss takes real numbers, but the targets are class numbers i32[4]: add "
        "`target_transforms: [one_hot]`, or store them as float32 if they are not classes");
}

TEST_CASE("huber_loss as PyTorch") {
  CHECK(torch_loss("huber_loss") == "nn.HuberLoss()");
  CHECK(torch_loss("{huber_loss: sum}") == "nn.HuberLoss(reduction=\"sum\")");
  CHECK(torch_loss("{huber_loss: {delta: 0.5}}") == "nn.HuberLoss(delta=0.5)");
}

TEST_CASE("huber_loss needs a delta above 0") {
  CHECK(complaint(lowered_loss("{huber_loss: {delta: 0}}", real({4}), real({4}))) ==
        "error: 'delta' must be positive");
}

}  // namespace dpt
