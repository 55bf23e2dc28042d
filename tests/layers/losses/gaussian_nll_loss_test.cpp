#include <doctest/doctest.h>

#include "layers/lowered.h"

namespace dpt {

TEST_CASE("gaussian_nll_loss takes a mean and a variance for each target") {
  CHECK(lowered_loss("gaussian_nll_loss", real({4, 6}), real({4, 3})) ==
        "loss.gaussian_nll_loss f64[1] = gaussian_nll_loss(input, target, divisor)\n");
  CHECK(complaint(lowered_loss("gaussian_nll_loss", real({4, 3}), real({4, 3}))) ==
        "error: gaussian_nll_loss takes a mean and a variance for each target: for the targets "
        "[4, 3] the output must be [4, 6], not [4, 3]");
  CHECK(complaint(lowered_loss("gaussian_nll_loss", real({4, 2}), numbers({4}))) ==
        "error: gaussian_nll_loss takes real numbers, but the targets are integers i32[4]: store "
        "them as float32 (csv: leave `classes` and `class_names` out)");
}

TEST_CASE("gaussian_nll_loss divides by the number of targets, half that of outputs") {
  CHECK(divisor_word("gaussian_nll_loss") == Divisor::half_elements);
  CHECK(terms_per_sample(Divisor::half_elements, {4, 6, 5}, 1) == 15);
  CHECK(divisor_word("{gaussian_nll_loss: sum}") == Divisor::one);
}

TEST_CASE("gaussian_nll_loss as PyTorch") {
  CHECK(torch_loss("gaussian_nll_loss") == "GaussianNLL()");
  CHECK(torch_loss("{gaussian_nll_loss: {log_variance: true, full: true, eps: 0.5, reduction: "
                   "sum}}") ==
        "GaussianNLL(log_variance=True, full=True, eps=0.5, reduction=\"sum\")");
}

}  // namespace dpt
