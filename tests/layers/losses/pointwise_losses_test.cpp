#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "graph/formulas/losses.h"
#include "layers/lowered.h"

namespace dpt {
namespace {

// Those of losses whose targets have the shape of the output.
template <class... F>
std::vector<std::string> names_of(formula::FormulaList<F...>) {
  std::vector<std::string> out;
  ((F::kRow.pairs ? void() : void(out.emplace_back(F::kRow.name))), ...);
  return out;
}

}  // namespace

TEST_CASE("pointwise losses compare values of one shape") {
  for (const std::string& loss : names_of(formula::PointwiseLosses{})) {
    CHECK(lowered_loss(loss, real({4, 3}), real({4, 3})) ==
          fmt::format("loss.{0} f64[1] = {0}(input, target, divisor)\n", loss));
    CHECK(complaint(lowered_loss(loss, real({4, 3}), real({4, 1}))) ==
          fmt::format("error: {}: the model's output is [4, 3], but the targets are [4, 1]", loss));
    CHECK(complaint(lowered_loss(loss, real({4, 3}), numbers({4}))) ==
          fmt::format("error: {} takes real numbers, but the targets are class numbers i32[4]: add "
                      "`target_transforms: [one_hot]`, or store them as float32 if they are not "
                      "classes",
                      loss));
  }
  for (const Shape& one : {Shape{4, 1}, Shape{4}})
    CHECK(complaint(lowered_loss("mse_loss", real(one), numbers({4}))) ==
          "error: mse_loss takes real numbers, but the targets are integers i32[4]: store them as "
          "float32 (csv: leave `classes` and `class_names` out)");
}

TEST_CASE("pointwise losses divide by the number of elements, as torch does") {
  for (const std::string& loss : names_of(formula::PointwiseLosses{})) {
    CAPTURE(loss);
    CHECK(divisor_word(loss) == Divisor::elements);
    CHECK(divisor_word(fmt::format("{{{}: {{reduction: sum}}}}", loss)) == Divisor::one);
    CHECK(complaint(lowered_loss(fmt::format("{{{}: {{reduction: none}}}}", loss), real({4, 3}),
                                 real({4, 3}))) ==
          "error: reduction 'none' cannot be trained: use 'mean' or 'sum'");
  }
  CHECK(divisor_word("{kl_div: batchmean}") == Divisor::samples);  // the divergence itself
}

TEST_CASE("pointwise losses as PyTorch") {
  struct Case {
    const char *loss, *torch;
  };
  for (const Case& c : {
           Case{"mse_loss", "nn.MSELoss()"},
           {"{mse_loss: sum}", "nn.MSELoss(reduction=\"sum\")"},
           {"{l1_loss: sum}", "nn.L1Loss(reduction=\"sum\")"},
           {"smooth_l1_loss", "nn.SmoothL1Loss()"},
           {"{smooth_l1_loss: {beta: 0}}", "nn.SmoothL1Loss(beta=0.0)"},
           {"{smooth_l1_loss: {beta: 0.25, reduction: sum}}",
            "nn.SmoothL1Loss(beta=0.25, reduction=\"sum\")"},
           {"{huber_loss: sum}", "nn.HuberLoss(reduction=\"sum\")"},
           {"{huber_loss: {delta: 0.5}}", "nn.HuberLoss(delta=0.5)"},
           {"{bce_loss: sum}", "nn.BCELoss(reduction=\"sum\")"},
           {"{bce_loss: {weight: [1, 0.5], reduction: sum}}",
            "nn.BCELoss(weight=torch.tensor([1.0, 0.5], dtype=torch.float32), reduction=\"sum\")"},
           {"bce_with_logits_loss", "nn.BCEWithLogitsLoss()"},
           {"{bce_with_logits_loss: {pos_weight: [3, 4], weight: [1, 2], reduction: sum}}",
            "nn.BCEWithLogitsLoss(weight=torch.tensor([1.0, 2.0], dtype=torch.float32), "
            "pos_weight=torch.tensor([3.0, 4.0], dtype=torch.float32), reduction=\"sum\")"},
           {"{kl_div: sum}", "nn.KLDivLoss(reduction=\"sum\")"},
           {"{kl_div: {log_target: true}}", "nn.KLDivLoss(log_target=True)"},
           {"{poisson_nll_loss: sum}", "nn.PoissonNLLLoss(reduction=\"sum\")"},
           {"{poisson_nll_loss: {log_input: false, full: true, eps: 1.0e-6}}",
            "nn.PoissonNLLLoss(log_input=False, full=True, eps=1e-06)"},
           {"{soft_margin_loss: sum}", "nn.SoftMarginLoss(reduction=\"sum\")"},
           {"{multilabel_soft_margin_loss: sum}", "nn.MultiLabelSoftMarginLoss(reduction=\"sum\")"},
           {"{hinge_embedding_loss: {margin: 0.5}}", "nn.HingeEmbeddingLoss(margin=0.5)"},
           {"{margin_ranking_loss: {margin: 0.5}}", "MarginRanking(margin=0.5)"},
           {"sigmoid_focal_loss", "SigmoidFocalLoss()"},
           {"{sigmoid_focal_loss: {alpha: -1, gamma: 1.5, reduction: sum}}",
            "SigmoidFocalLoss(alpha=-1.0, gamma=1.5, reduction=\"sum\")"},
       })
    CHECK(torch_loss(c.loss) == c.torch);
}

TEST_CASE("pointwise losses refuse wrong parameters") {
  const auto refusal = [](const char* loss) {
    return complaint(lowered_loss(loss, real({4}), real({4})));
  };
  CHECK(refusal("{smooth_l1_loss: {beta: -1}}") == "error: 'beta' must not be negative");
  CHECK(refusal("{huber_loss: {delta: 0}}") == "error: 'delta' must be positive");
  CHECK(refusal("{poisson_nll_loss: {eps: -1}}") == "error: 'eps' must not be negative");
  CHECK(refusal("{sigmoid_focal_loss: 2}") == "error: 'alpha' must be between 0 and 1, or -1");
}

TEST_CASE("bce_loss and bce_with_logits_loss weigh the outputs and the positive targets") {
  const char* const weighted = "{bce_loss: {weight: [1, 0.5, 2]}}";
  CHECK(lowered_loss(weighted, real({4, 3}), real({4, 3})) ==
        "loss.bce_loss f64[1] = bce_loss(input, target, divisor, loss.weight)\n");
  CHECK(complaint(lowered_loss(weighted, real({4, 2}), real({4, 2}))) ==
        "error: bce_loss: 'weight' has 3 numbers, but there are 2 outputs");
  const char* const both = "{bce_with_logits_loss: {pos_weight: [3, 4], weight: [1, 2]}}";
  CHECK(lowered_loss(both, real({4, 2}), real({4, 2})) ==
        "loss.bce_with_logits_loss f64[1] = bce_with_logits_loss(input, target, divisor, "
        "loss.weight, loss.pos_weight)\n");
  CHECK(lowered_loss("{bce_with_logits_loss: {pos_weight: [3, 4]}}", real({4, 2}), real({4, 2})) ==
        "loss.bce_with_logits_loss f64[1] = bce_with_logits_loss(input, target, divisor, "
        "loss.pos_weight)\n");
  const char* const one = "{bce_with_logits_loss: {pos_weight: 3}}";
  CHECK(lowered_loss(one, real({4, 2}), real({4, 2})) ==
        "loss.bce_with_logits_loss f64[1] = bce_with_logits_loss(input, target, divisor, "
        "loss.pos_weight)\n");
  CHECK(torch_loss(one) ==
        "nn.BCEWithLogitsLoss(pos_weight=torch.tensor([3.0], dtype=torch.float32))");
}

TEST_CASE("multilabel_soft_margin_loss is a mean over the last dimension") {
  const char* const sum = "{multilabel_soft_margin_loss: sum}";
  CHECK(complaint(lowered_loss(sum, real({4}), real({4}))) ==
        "error: multilabel_soft_margin_loss takes outputs [N, C], not [4]");
}

TEST_CASE("margin_ranking_loss compares the halves of an output") {
  CHECK(lowered_loss("margin_ranking_loss", real({4, 2}), real({4, 1})) ==
        "loss.slice f32[4, 1] = slice(input)\n"
        "loss.slice f32[4, 1] = slice(input)\n"
        "loss.scale f32[4, 1] = scale(loss.slice, loss.minus)\n"
        "loss.add f32[4, 1] = add(loss.slice, loss.scale)\n"
        "loss.margin_ranking_loss f64[1] = margin_ranking_loss(loss.add, target, divisor)\n");
  CHECK(divisor_word("margin_ranking_loss") == Divisor::half_elements);
  CHECK(complaint(lowered_loss("margin_ranking_loss", real({4, 3}), real({4, 1}))) ==
        "error: margin_ranking_loss compares two scores of each sample [N, 2, ...], but the "
        "model's output is [4, 3]");
}

}  // namespace dpt
