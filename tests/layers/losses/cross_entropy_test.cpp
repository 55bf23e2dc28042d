#include <doctest/doctest.h>

#include "graph/attrs.h"
#include "layers/lowered.h"

namespace dpt {

TEST_CASE("cross_entropy takes scores and classes") {
  CHECK(lowered_loss("cross_entropy", real({4, 3}), numbers({4})) ==
        "loss.cross_entropy f64[1] = cross_entropy(input, target, divisor)\n"
        "loss.count_correct f64[1] = count_correct(input, target)\n");
  CHECK(complaint(lowered_loss("cross_entropy", real({4, 3}), numbers({5}))) ==
        "error: cross_entropy: the model's output is [4, 3], so the targets must be [4], not [5]");
  CHECK(complaint(lowered_loss("cross_entropy", real({4, 3}), numbers({4, 1}))) ==
        "error: cross_entropy: the model's output is [4, 3], so the targets must be [4], not [4, "
        "1]; save them as y.ravel()");
  CHECK(complaint(lowered_loss("cross_entropy", real({4}), numbers({4}))) ==
        "error: cross_entropy takes class scores [N, C, ...], but the model's output is [4]");
  CHECK(complaint(lowered_loss("cross_entropy", real({4, 3}), numbers({4}), 10)) ==
        "error: cross_entropy: the model outputs 3 scores per sample, but the data has 10 classes");
}

TEST_CASE("cross_entropy with several targets a sample divides by their number") {
  const std::string both =
      "loss.cross_entropy f64[1] = cross_entropy(input, target, divisor)\n"
      "loss.count_correct f64[1] = count_correct(input, target)\n";
  CHECK(lowered_loss("cross_entropy", real({4, 3, 5}), numbers({4, 5})) == both);
  CHECK(lowered_loss("{cross_entropy: sum}", real({4, 3, 5}), numbers({4, 5})) == both);
}

TEST_CASE("cross_entropy takes scores in the last extent") {
  const char* const last = "{cross_entropy: {class_dim: -1}}";
  const auto lower = [](const std::string& loss, const Shape& output) {
    ModelText text("model: [identity]", loss);
    return build_graph(text.spec,
                       {.input = real(output), .target = numbers({4, 5}), .differentiate = false},
                       text.diagnostics);
  };
  const Graph graph = lower(last, {4, 5, 3});
  CHECK(std::any_cast<const CrossEntropy&>(graph.nodes.at(0).attrs).dim == 2);
  CHECK(std::any_cast<const CountCorrect&>(graph.nodes.at(1).attrs).dim == 2);
  CHECK(class_dim_of(ModelText("model: [identity]", last).spec, {4, 5, 3}) == 2);
  CHECK(class_dim_of(ModelText("model: [identity]", last).spec, {4, 3}) == 1);
  CHECK(complaint(lowered_loss("cross_entropy", real({4, 5, 3}), numbers({4, 5}))) ==
        "error: cross_entropy: the model's output is [4, 5, 3], so the targets must be [4, 3], not "
        "[4, 5]; "
        "write class_dim: -1 if the last dimension has the scores");
  CHECK(complaint(lowered_loss(last, real({4, 3, 5}), numbers({4, 5}))) ==
        "error: cross_entropy: the model's output is [4, 3, 5], so the targets must be [4, 3], not "
        "[4, 5]; "
        "leave class_dim out if dimension 1 has the scores");
  CHECK(complaint(lowered_loss(last, real({4, 5, 3}), numbers({4, 5}), 10)) ==
        "error: cross_entropy: the model outputs 3 scores per sample, but the data has 10 classes");
  CHECK(complaint(lowered_loss("{cross_entropy: {class_dim: 2}}", real({4, 5, 3}),
                               numbers({4, 5}))) == "error: 'class_dim' must be 1 or -1");
  CHECK(complaint(lowered_loss("{cross_entropy: {class_dim: -1, weight: [1, 2]}}", real({4, 5, 3}),
                               numbers({4, 5}))) ==
        "error: cross_entropy: 'weight' has 2 numbers, but there are 3 classes");
}

TEST_CASE("cross_entropy with weights divides by those of the targets") {
  const char* const weighted = "{cross_entropy: {weight: [1, 2, 0.5]}}";
  CHECK(lowered_loss(weighted, real({4, 3}), numbers({4})) ==
        "loss.target_weight f64[1] = target_weight(target, loss.weight)\n"
        "loss.cross_entropy f64[1] = cross_entropy(input, target, divisor, loss.weight)\n"
        "loss.count_correct f64[1] = count_correct(input, target)\n");
  CHECK(complaint(lowered_loss(weighted, real({4, 2}), numbers({4}))) ==
        "error: cross_entropy: 'weight' has 3 numbers, but there are 2 classes");
  CHECK(divisor_word("cross_entropy") == Divisor::positions);
  CHECK(divisor_word(weighted) == Divisor::targets);
  CHECK(divisor_word("{cross_entropy: {ignore_index: 2}}") == Divisor::targets);
  CHECK(divisor_word("{cross_entropy: {weight: [1, 2], reduction: sum}}") == Divisor::one);
}

TEST_CASE("cross_entropy as PyTorch, and what is refused") {
  CHECK(torch_loss("cross_entropy") == "nn.CrossEntropyLoss()");
  CHECK(complaint(lowered_loss("cross_entropy", real({4, 3}), real({4, 1}))) ==
        "error: cross_entropy takes class numbers (integers) or probabilities f32[4, 3], but the "
        "targets are real numbers f32[4, 1]; if they are class numbers, set `classes: 3` in the "
        "dataset `csv`, or store them as integers (npy: int64)");
  CHECK(torch_loss("{cross_entropy: {weight: [1, 0.5], ignore_index: 1, reduction: sum}}") ==
        "nn.CrossEntropyLoss(weight=torch.tensor([1.0, 0.5], dtype=torch.float32), ignore_index=1, "
        "reduction=\"sum\")");
  CHECK(complaint(lowered_loss("{cross_entropy: none}", real({4, 3}), numbers({4}))) ==
        "error: reduction 'none' cannot be trained: use 'mean' or 'sum'");
}

TEST_CASE("cross_entropy with probabilities divides by their number, whatever the weights") {
  CHECK(lowered_loss("{cross_entropy: {weight: [1, 2, 0.5]}}", real({4, 3}), real({4, 3})) ==
        "loss.cross_entropy f64[1] = cross_entropy(input, target, divisor, loss.weight)\n");
  CHECK(complaint(lowered_loss("{cross_entropy: {ignore_index: 1}}", real({4, 3}), real({4, 3}))) ==
        "error: cross_entropy: ignore_index does not apply to targets that are probabilities; "
        "leave it out");
}

TEST_CASE("cross_entropy smooths its labels") {
  CHECK(torch_loss("{cross_entropy: {label_smoothing: 0.1}}") ==
        "nn.CrossEntropyLoss(label_smoothing=0.1)");
  CHECK(complaint(
            lowered_loss("{cross_entropy: {label_smoothing: 2}}", real({4, 3}), numbers({4}))) ==
        "error: 'label_smoothing' must be between 0 and 1");
}

}  // namespace dpt
