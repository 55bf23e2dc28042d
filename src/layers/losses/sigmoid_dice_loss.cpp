// sigmoid_dice_loss: for each sample and channel 1 - 2 |P T| / (|P| + |T|), with the probabilities
// P that sigmoid makes of logits [N, C, ...], and with targets T of that shape.
#include "layers/losses/dice.h"

namespace dpt::losses {
namespace {

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

LossType sigmoid_dice_loss() {
  return loss_type<SigmoidDiceLoss>(
      "sigmoid_dice_loss",
      "Dice loss of logits and values: how little predicted and true areas overlap.");
}

}  // namespace dpt::losses
