#include <doctest/doctest.h>

#include "graph/attrs.h"
#include "layers/lowered.h"

namespace dpt {

TEST_CASE("kl_div compares values of one shape") {
  CHECK(lowered_loss("kl_div", real({4, 3}), real({4, 3})) ==
        "loss.kl_div f64[1] = kl_div(input, target, divisor)\n");
  CHECK(complaint(lowered_loss("kl_div", real({4, 3}), real({4, 1}))) ==
        "error: kl_div: the model's output is [4, 3], but the targets are [4, 1]");
  CHECK(complaint(lowered_loss("kl_div", real({4, 3}), numbers({4}))) ==
        "error: kl_div takes real numbers, but the targets are class numbers i32[4]: add "
        "`target_transforms: [one_hot]`, or store them as float32 if they are not classes");
}

TEST_CASE("kl_div as PyTorch") {
  CHECK(torch_loss("kl_div") == "nn.KLDivLoss()");
  CHECK(torch_loss("{kl_div: sum}") == "nn.KLDivLoss(reduction=\"sum\")");
  CHECK(torch_loss("{kl_div: {log_target: true}}") == "nn.KLDivLoss(log_target=True)");
}

TEST_CASE("kl_div: batchmean is the divergence itself") {
  CHECK(divisor_word("{kl_div: batchmean}") == Divisor::samples);
}

}  // namespace dpt
