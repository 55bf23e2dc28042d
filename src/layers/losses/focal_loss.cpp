// focal_loss (Lin et al., 2017): cross_entropy with the factor (1 - p)^gamma, where p is the
// probability of the target class. Scores, targets and class_dim are as in cross_entropy.
#include "layers/losses/common.h"

namespace dpt::losses {
namespace {

constexpr std::string_view kFocalTorch = R"py(class FocalLoss(nn.Module):
    """Cross entropy with the factor (1 - p)^gamma (Lin et al., 2017)."""

    def __init__(self, gamma=2.0, weight=None, ignore_index=-100, reduction="mean"):
        super().__init__()
        self.gamma, self.class_weight = gamma, weight
        self.ignore_index, self.reduction = ignore_index, reduction
        self.weight = None  # the mean is that of targets, whatever their weights

    def forward(self, output, target):
        kept = target != self.ignore_index
        cost = nn.functional.cross_entropy(
            output, target, ignore_index=self.ignore_index, reduction="none"
        )[kept]
        loss = (-torch.expm1(-cost)) ** self.gamma * cost
        if self.class_weight is not None:
            loss = loss * self.class_weight[target[kept]]
        return loss.sum() if self.reduction == "sum" else loss.mean()
)py";

struct FocalLoss : ClassTargets {
  static constexpr std::string_view kTorchClass = kFocalTorch;
  static constexpr OutputKind kOutputs = OutputKind::scores;
  static constexpr Usage kUsage{
      "",
      "loss: focal_loss\n"
      "loss: {focal_loss: {gamma: 1.5, reduction: sum, weight: [1, 2, 1], ignore_index: 0,\n"
      "    class_dim: -1}}"};

  double gamma = 2;

  static KeyTable<FocalLoss> keys() {
    return KeyTable<FocalLoss>()
        .optional("gamma", &FocalLoss::gamma, "exponent of (1 - p); 0: cross_entropy", kNotNegative)
        .choice("reduction", &Reduction::reduction, {"mean", "sum", "none"}, kDoc)
        .optional("weight", &FocalLoss::weight,
                  "weight of each class (alpha); the mean divides by the number of targets")
        .optional("ignore_index", &FocalLoss::ignore_index, "targets of this class are ignored")
        .optional("class_dim", &ClassDim::class_dim, kClassDim, kOneOrLast)
        .not_in_torch();
  }

  ValueId build(GraphBuilder& g, ValueId output, ValueId target, ValueId divisor) const {
    const Shape y = g.shape(output);
    require_classes("focal_loss", g, output, target, dim(y));
    std::vector<ValueId> in = {g.apply("log_softmax", {output}, Softmax{dim(y)}), target, divisor};
    add_weight("focal_loss", g, y, in);
    return g.apply("nll_loss", in,
                   NllLoss{.ignore_index = ignore_index, .dim = dim(y), .gamma = gamma});
  }

  // The mean is that of targets, whatever their weights.
  Divisor divisor() const {
    return over(ignore_index == kNoClass ? Divisor::positions : Divisor::targets);
  }

  ValueId target_weight(GraphBuilder& g, ValueId target) const {
    return g.apply("target_weight", {target}, NllLoss{.ignore_index = ignore_index});
  }
};

}  // namespace

LossType focal_loss() {
  return loss_type<FocalLoss>("focal_loss",
                              "Cross entropy in which classes that are predicted well count less.");
}

}  // namespace dpt::losses
