#include <doctest/doctest.h>

#include "graph/attrs.h"
#include "layers/lowered.h"

namespace dpt {

TEST_CASE("mse_loss compares values of one shape") {
  CHECK(lowered_loss("mse_loss", real({4, 3}), real({4, 3})) ==
        "loss.mse_loss f64[1] = mse_loss(input, target, divisor)\n");
  CHECK(complaint(lowered_loss("mse_loss", real({4, 3}), real({4, 1}))) ==
        "error: mse_loss: the model's output is [4, 3], but the targets are [4, 1]");
  CHECK(complaint(lowered_loss("mse_loss", real({4, 3}), numbers({4}))) ==
        "error: mse_loss takes real numbers, but the targets are class numbers i32[4]: add "
        "`target_transforms: [one_hot]`, or store them as float32 if they are not classes");
  for (const Shape& one : {Shape{4, 1}, Shape{4}})
    CHECK(complaint(lowered_loss("mse_loss", real(one), numbers({4}))) ==
          "error: mse_loss takes real numbers, but the targets are integers i32[4]: store them as "
          "float32 (csv: leave `classes` out)");
}

TEST_CASE("mse_loss as PyTorch") {
  CHECK(torch_loss("mse_loss") == "nn.MSELoss()");
  CHECK(torch_loss("{mse_loss: sum}") == "nn.MSELoss(reduction=\"sum\")");
}

}  // namespace dpt
