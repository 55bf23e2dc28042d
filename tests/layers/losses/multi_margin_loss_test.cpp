#include <doctest/doctest.h>

#include "graph/attrs.h"
#include "layers/lowered.h"

namespace dpt {

TEST_CASE("multi_margin_loss compares scores with classes") {
  CHECK(lowered_loss("multi_margin_loss", real({4, 3}), numbers({4})) ==
        "loss.multi_margin_loss f64[1] = multi_margin_loss(input, target, divisor)\n"
        "loss.count_correct f64[1] = count_correct(input, target)\n");
  CHECK(complaint(lowered_loss("multi_margin_loss", real({4, 3}), real({4, 3})))
            .find("error: multi_margin_loss takes class numbers, but the targets are real numbers "
                  "f32[4, 3]") == 0);
  CHECK(complaint(lowered_loss("multi_margin_loss", real({4, 3, 2}), numbers({4, 2}))) ==
        "error: multi_margin_loss takes one score per class [N, C], but the model's output is "
        "[4, 3, 2]");
  CHECK(complaint(lowered_loss("{multi_margin_loss: {weight: [1, 2]}}", real({4, 3}), numbers({4})))
            .find("multi_margin_loss") != std::string::npos);
}

TEST_CASE("multi_margin_loss divides by the samples, whatever their weights") {
  CHECK(divisor_word("multi_margin_loss") == Divisor::samples);
  CHECK(divisor_word("{multi_margin_loss: {weight: [1, 2, 3]}}") == Divisor::samples);
  CHECK(divisor_word("{multi_margin_loss: sum}") == Divisor::one);
}

TEST_CASE("multi_margin_loss as PyTorch") {
  CHECK(torch_loss("multi_margin_loss") == "nn.MultiMarginLoss()");
  CHECK(torch_loss("{multi_margin_loss: sum}") == "nn.MultiMarginLoss(reduction=\"sum\")");
  CHECK(torch_loss("{multi_margin_loss: {p: 2, margin: 0.5, weight: [1, 2.5]}}") ==
        "nn.MultiMarginLoss(p=2, margin=0.5, weight=torch.tensor([1.0, 2.5], "
        "dtype=torch.float32))");
}

TEST_CASE("multi_margin_loss has the powers 1 and 2") {
  CHECK(complaint(lowered_loss("{multi_margin_loss: {p: 3}}", real({4, 3}), numbers({4}))) ==
        "error: 'p' must be 1 or 2");
}

}  // namespace dpt
