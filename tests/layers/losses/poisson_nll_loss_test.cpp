#include <doctest/doctest.h>

#include "graph/attrs.h"
#include "layers/lowered.h"

namespace dpt {

TEST_CASE("poisson_nll_loss compares values of one shape") {
  CHECK(lowered_loss("poisson_nll_loss", real({4, 3}), real({4, 3})) ==
        "loss.poisson_nll_loss f64[1] = poisson_nll_loss(input, target, divisor)\n");
  CHECK(complaint(lowered_loss("poisson_nll_loss", real({4, 3}), real({4, 1}))) ==
        "error: poisson_nll_loss: the model's output is [4, 3], but the targets are [4, 1]");
  CHECK(complaint(lowered_loss("poisson_nll_loss", real({4, 3}), numbers({4}))) ==
        "error: poisson_nll_loss takes real numbers, but the targets are class numbers i32[4]: add "
        "`target_transforms: [one_hot]`, or store them as float32 if they are not classes");
}

TEST_CASE("poisson_nll_loss as PyTorch") {
  CHECK(torch_loss("poisson_nll_loss") == "nn.PoissonNLLLoss()");
  CHECK(torch_loss("{poisson_nll_loss: sum}") == "nn.PoissonNLLLoss(reduction=\"sum\")");
  CHECK(torch_loss("{poisson_nll_loss: {log_input: false, full: true, eps: 1.0e-6}}") ==
        "nn.PoissonNLLLoss(log_input=False, full=True, eps=1e-06)");
}

TEST_CASE("poisson_nll_loss needs an eps that is not negative") {
  CHECK(complaint(lowered_loss("{poisson_nll_loss: {eps: -1}}", real({4}), real({4}))) ==
        "error: 'eps' must not be negative");
}

}  // namespace dpt
