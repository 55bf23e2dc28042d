#include <doctest/doctest.h>

#include "graph/attrs.h"
#include "layers/lowered.h"

namespace dpt {

TEST_CASE("nll_loss takes scores and classes") {
  CHECK(lowered_loss("nll_loss", real({4, 3}), numbers({4})) ==
        "loss.nll_loss f64[1] = nll_loss(input, target, divisor)\n"
        "loss.count_correct f64[1] = count_correct(input, target)\n");
  CHECK(complaint(lowered_loss("nll_loss", real({4, 3}), numbers({5}))) ==
        "error: nll_loss: the model's output is [4, 3], so the targets must be [4], not [5]");
  CHECK(complaint(lowered_loss("nll_loss", real({4}), numbers({4}))) ==
        "error: nll_loss takes class scores [N, C, ...], but the model's output is [4]");
  CHECK(complaint(lowered_loss("nll_loss", real({4, 3}), numbers({4}), 10)) ==
        "error: nll_loss: the model outputs 3 scores per sample, but the data has 10 classes");
}

TEST_CASE("nll_loss with several targets a sample divides by their number") {
  const std::string both =
      "loss.nll_loss f64[1] = nll_loss(input, target, divisor)\n"
      "loss.count_correct f64[1] = count_correct(input, target)\n";
  CHECK(lowered_loss("nll_loss", real({4, 3, 5}), numbers({4, 5})) == both);
  CHECK(lowered_loss("{nll_loss: sum}", real({4, 3, 5}), numbers({4, 5})) == both);
  CHECK(lowered_loss("{nll_loss: {class_dim: -1}}", real({4, 5, 3}), numbers({4, 5})) == both);
}

TEST_CASE("nll_loss with weights divides by those of the targets") {
  const char* const weighted = "{nll_loss: {weight: [1, 2, 0.5]}}";
  CHECK(lowered_loss(weighted, real({4, 3}), numbers({4})) ==
        "loss.target_weight f64[1] = target_weight(target, loss.weight)\n"
        "loss.nll_loss f64[1] = nll_loss(input, target, divisor, loss.weight)\n"
        "loss.count_correct f64[1] = count_correct(input, target)\n");
  CHECK(complaint(lowered_loss(weighted, real({4, 2}), numbers({4}))) ==
        "error: nll_loss: 'weight' has 3 numbers, but there are 2 classes");
  CHECK(divisor_word("nll_loss") == Divisor::positions);
  CHECK(divisor_word(weighted) == Divisor::targets);
  CHECK(divisor_word("{nll_loss: {ignore_index: 2}}") == Divisor::targets);
  CHECK(divisor_word("{nll_loss: {weight: [1, 2], reduction: sum}}") == Divisor::one);
}

TEST_CASE("nll_loss as PyTorch, and what is refused") {
  CHECK(torch_loss("nll_loss") == "nn.NLLLoss()");
  CHECK(torch_loss("{nll_loss: {weight: [1, 0.5], ignore_index: 1, reduction: sum}}") ==
        "nn.NLLLoss(weight=torch.tensor([1.0, 0.5], dtype=torch.float32), ignore_index=1, "
        "reduction=\"sum\")");
  CHECK(complaint(lowered_loss("{nll_loss: none}", real({4, 3}), numbers({4}))) ==
        "error: reduction 'none' cannot be trained: use 'mean' or 'sum'");
}

TEST_CASE("nll_loss takes classes only") {
  CHECK(complaint(lowered_loss("nll_loss", real({4, 3}), real({4, 3}))) ==
        "error: nll_loss takes class numbers, but the targets are real numbers f32[4, 3]; if they "
        "are "
        "class numbers, set `classes: 3` in the dataset `csv`, or store them as integers (npy: "
        "int64)");
}

}  // namespace dpt
