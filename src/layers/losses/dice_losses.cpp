// dice_loss: for each sample and class 1 - 2 |P T| / (|P| + |T|), with the probabilities P that
// softmax makes of scores [N, C, ...], and with T = 1 where the target [N, ...] is the class.
// sigmoid_dice_loss: for each sample and channel 1 - 2 |P T| / (|P| + |T|), with the probabilities
// P that sigmoid makes of logits [N, C, ...], and with targets T of that shape.
#include "layers/losses/common.h"

namespace dpt::losses {
namespace {

struct DiceSettings : Reduction {
  double smooth = 1e-5;

  template <class L>
  static KeyTable<L> dice_keys() {
    return KeyTable<L>()
        .optional(
            "smooth", &DiceSettings::smooth,
            "added to numerator and denominator, so that a channel without targets has a loss",
            kPositive)
        .choice("reduction", &Reduction::reduction, {"mean", "sum", "none"}, kDoc);
  }

  // probabilities: [N, C, ...]
  ValueId of_probabilities(GraphBuilder& g, ValueId probabilities, ValueId target,
                           ValueId divisor) const {
    const auto channels = static_cast<double>(g.shape(probabilities)[1]);
    return g.apply("dice_loss", {probabilities, target, divisor},
                   Dice{.smooth = smooth, .share = reduction == "sum" ? 1 : 1 / channels});
  }

  Divisor divisor() const { return over(Divisor::samples); }
};

constexpr std::string_view kDiceTorch = R"py(class DiceLoss(nn.Module):
    """monai.losses.DiceLoss(softmax=True, to_onehot_y=True)."""

    def __init__(self, smooth=1e-5, reduction="mean"):
        super().__init__()
        self.smooth, self.reduction = smooth, reduction

    def forward(self, output, target):
        p = output.softmax(1)
        t = nn.functional.one_hot(target, p.shape[1]).movedim(-1, 1).to(p.dtype)
        p, t = p.reshape(*p.shape[:2], -1), t.reshape(*p.shape[:2], -1)
        both, all = (p * t).sum(2), (p + t).sum(2)
        loss = 1 - (2 * both + self.smooth) / (all + self.smooth)
        return loss.sum() if self.reduction == "sum" else loss.mean()
)py";

struct DiceLoss : DiceSettings {
  static constexpr std::string_view kTorchClass = kDiceTorch;
  static constexpr OutputKind kOutputs = OutputKind::scores;
  static constexpr Usage kUsage{"",
                                "loss: dice_loss\n"
                                "loss: {dice_loss: {smooth: 1, reduction: sum}}"};

  static KeyTable<DiceLoss> keys() { return dice_keys<DiceLoss>(); }
  int dim(const Shape& /*output*/) const { return 1; }

  ValueId build(GraphBuilder& g, ValueId output, ValueId target, ValueId divisor) const {
    if (g.desc(target).dtype == DType::f32)
      fail(Fault::spec,
           "dice_loss takes class numbers, but the targets are real numbers {}{}; "
           "sigmoid_dice_loss takes a number for each output",
           name_of(DType::f32), g.shape(target).str());
    require_classes("dice_loss", g, output, target, 1);
    return of_probabilities(g, g.apply("softmax", {output}, Softmax{1}), target, divisor);
  }
};

constexpr std::string_view kSigmoidDiceTorch = R"py(class SigmoidDiceLoss(nn.Module):
    """monai.losses.DiceLoss(sigmoid=True)."""

    def __init__(self, smooth=1e-5, reduction="mean"):
        super().__init__()
        self.smooth, self.reduction = smooth, reduction

    def forward(self, output, target):
        p = output.sigmoid().reshape(*output.shape[:2], -1)
        t = target.reshape(p.shape)
        both, all = (p * t).sum(2), (p + t).sum(2)
        loss = 1 - (2 * both + self.smooth) / (all + self.smooth)
        return loss.sum() if self.reduction == "sum" else loss.mean()
)py";

struct SigmoidDiceLoss : DiceSettings {
  static constexpr std::string_view kTorchClass = kSigmoidDiceTorch;
  static constexpr OutputKind kOutputs = OutputKind::logits;
  static constexpr Usage kUsage{"",
                                "loss: sigmoid_dice_loss\n"
                                "loss: {sigmoid_dice_loss: {smooth: 1, reduction: sum}}"};

  static KeyTable<SigmoidDiceLoss> keys() { return dice_keys<SigmoidDiceLoss>(); }

  ValueId build(GraphBuilder& g, ValueId output, ValueId target, ValueId divisor) const {
    require_values("sigmoid_dice_loss", g, output, target);
    if (g.shape(output).rank() < 2)
      fail(Fault::spec, "sigmoid_dice_loss takes outputs [N, C, ...], but the model's output is {}",
           g.shape(output).str());
    return of_probabilities(g, g.apply("sigmoid", {output}), target, divisor);
  }
};

}  // namespace

std::vector<LossType> dice_losses() {
  return {loss_type<DiceLoss>(
              "dice_loss",
              "Dice loss of scores and classes: how little predicted and true areas overlap."),
          loss_type<SigmoidDiceLoss>(
              "sigmoid_dice_loss",
              "Dice loss of logits and values: how little predicted and true areas overlap.")};
}

}  // namespace dpt::losses
