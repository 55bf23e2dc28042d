// sigmoid_focal_loss (Lin et al., 2017): bce_with_logits_loss with the factor (1 - p)^gamma, where
// p is the probability of the target, and with weights of positive and negative targets; any shape.
#include "layers/losses/common.h"

namespace dpt::losses {
namespace {

constexpr std::string_view kSigmoidFocalTorch = R"py(class SigmoidFocalLoss(nn.Module):
    """torchvision.ops.sigmoid_focal_loss."""

    def __init__(self, alpha=0.25, gamma=2.0, reduction="mean"):
        super().__init__()
        self.alpha, self.gamma, self.reduction = alpha, gamma, reduction

    def forward(self, output, target):
        p = output.sigmoid()
        cost = nn.functional.binary_cross_entropy_with_logits(output, target, reduction="none")
        loss = (p * (1 - target) + (1 - p) * target) ** self.gamma * cost
        if self.alpha >= 0:
            loss = (self.alpha * target + (1 - self.alpha) * (1 - target)) * loss
        return loss.sum() if self.reduction == "sum" else loss.mean()
)py";

struct SigmoidFocalLoss : Reduction {
  static constexpr OutputKind kOutputs = OutputKind::logits;
  static constexpr Usage kUsage{
      "torchvision.ops.sigmoid_focal_loss",
      "loss: sigmoid_focal_loss\n"
      "loss: {sigmoid_focal_loss: {alpha: 0.75, gamma: 1.5, reduction: sum}}"};

  double alpha = 0.25, gamma = 2;

  static KeyTable<SigmoidFocalLoss> keys() {
    return KeyTable<SigmoidFocalLoss>()
        .optional("alpha", &SigmoidFocalLoss::alpha,
                  "weight of positive targets; negative ones have 1 - alpha; -1: no weights",
                  Rule<double>{"must be between 0 and 1, or -1",
                               [](const double& a) { return a == -1 || (a >= 0 && a <= 1); }})
        .optional("gamma", &SigmoidFocalLoss::gamma, "exponent of (1 - p)", kNotNegative)
        .choice("reduction", &Reduction::reduction, {"mean", "sum", "none"}, kDoc);
  }

  ValueId build(GraphBuilder& g, ValueId output, ValueId target, ValueId divisor) const {
    require_values("sigmoid_focal_loss", g, output, target);
    return g.apply("sigmoid_focal_loss", {output, target, divisor},
                   SigmoidFocal{.alpha = alpha, .gamma = gamma});
  }

  Divisor divisor() const { return over(Divisor::elements); }

  std::string torch() const {
    return PythonCall("SigmoidFocalLoss")
        .key("alpha", alpha, 0.25)
        .key("gamma", gamma, 2)
        .key("reduction", reduction, "mean")
        .str();
  }
};

}  // namespace

LossType sigmoid_focal_loss() {
  LossType type = loss_type<SigmoidFocalLoss>(
      "sigmoid_focal_loss",
      "Binary cross entropy of logits in which targets that are predicted well count less.");
  type.torch_class = kSigmoidFocalTorch;
  return type;
}

}  // namespace dpt::losses
