#include <doctest/doctest.h>

#include "layers/lowered.h"

namespace dpt {

TEST_CASE("ctc_loss takes scores at each time and label sequences") {
  CHECK(lowered_loss("ctc_loss", real({4, 9, 5}), numbers({4, 3})) ==
        "loss.ctc_loss f64[1] = ctc_loss(input, target, divisor)\n");
  CHECK(complaint(lowered_loss("ctc_loss", real({4, 5}), numbers({4, 3}))) ==
        "error: ctc_loss takes scores of each class at each time [N, T, C], but the model's output "
        "is [4, 5]");
  CHECK(complaint(lowered_loss("{ctc_loss: {ignore_index: -1}}", real({4, 9, 5}), real({4, 3}))) ==
        "error: ctc_loss takes sequences of class numbers [N, S], filled up with ignore_index -1; "
        "the targets are f32[4, 3]");
  CHECK(complaint(lowered_loss("{ctc_loss: {blank: 5}}", real({4, 9, 5}), numbers({4, 3}))) ==
        "error: ctc_loss: blank is 5, but the model has scores of classes 0 to 4 only");
  CHECK(complaint(lowered_loss("ctc_loss", real({4, 9, 5}), numbers({4, 3}), 6)) ==
        "error: ctc_loss: the model outputs 5 scores per sample, but the data has 6 classes");
}

TEST_CASE("ctc_loss divides by the samples") {
  CHECK(divisor_word("ctc_loss") == Divisor::samples);
  CHECK(divisor_word("{ctc_loss: sum}") == Divisor::one);
}

TEST_CASE("ctc_loss says which targets it does not take") {
  const ModelText text("model: [identity]", "{ctc_loss: {blank: 4, ignore_index: -1}}");
  const Choice& loss = text.spec.loss;
  const auto problem = [&](const std::vector<int32_t>& labels) {
    return static_cast<const LossType*>(loss.what)->target_problem(loss.settings, {}, labels);
  };
  CHECK(problem({1, 2, 0}).empty());
  CHECK(problem({1, -1, -1}).empty());
  CHECK(problem({-1, -1}).empty());
  CHECK(problem({1, 4, -1}) ==
        "has the label 4, which is the blank of ctc_loss: if it is padding, write ignore_index: 4; "
        "otherwise choose another blank");
  CHECK(problem({1, -1, 2}) == "has labels behind the padding -1: padding must come last");
}

// A blank between equal labels takes a step of the time, too.
TEST_CASE("ctc_loss says which label sequences are too long for the output") {
  const auto problem = [&](const std::string& keys, const std::vector<int32_t>& labels) {
    const ModelText text("model: [identity]", "{ctc_loss: {" + keys + "}}");
    const Choice& loss = text.spec.loss;
    return static_cast<const LossType*>(loss.what)->output_problem(loss.settings, labels, {4, 5});
  };
  CHECK(problem("", {1, 2, 3, 4}).empty());
  CHECK(problem("", {1, 1, 2}).empty());
  CHECK(problem("ignore_index: -1", {1, 2, 3, 4, -1, -1}).empty());
  CHECK(
      problem("", {1, 2, 3, 4, 1})
          .starts_with(
              "has 5 labels, so ctc_loss needs 5 time steps, but the model's output has T = 4: "));
  CHECK(problem("", {1, 1, 1})
            .starts_with("has 3 labels and 2 repetitions, which need a blank between equal labels, "
                         "so ctc_loss needs "
                         "5 time steps, but the model's output has T = 4: "));
  CHECK(problem("zero_infinity: true", {1, 1, 1}).empty());
}

TEST_CASE("ctc_loss as PyTorch") {
  CHECK(torch_loss("ctc_loss") == "Ctc()");
  CHECK(torch_loss("{ctc_loss: {blank: 4, zero_infinity: true, ignore_index: -1}}") ==
        "Ctc(blank=4, zero_infinity=True, ignore_index=-1)");
}

}  // namespace dpt
