// huber_loss: d^2 / 2 if |d| <= delta, else delta (|d| - delta / 2), where d = y - t; any shape.
#include "layers/losses/common.h"

namespace dpt::losses {
namespace {

struct HuberLoss : Reduction {
  static constexpr bool kEstimates = true;
  static constexpr Usage kUsage{"torch.nn.HuberLoss",
                                "loss: huber_loss\n"
                                "loss: {huber_loss: {reduction: sum, delta: 0.5}}"};

  double delta = 1;

  static KeyTable<HuberLoss> keys() {
    return KeyTable<HuberLoss>()
        .choice("reduction", &Reduction::reduction, {"mean", "sum", "none"}, kDoc)
        .optional("delta", &HuberLoss::delta, "difference at which the loss becomes linear",
                  kPositive);
  }
  ValueId build(GraphBuilder& g, ValueId output, ValueId target, ValueId divisor) const {
    require_values("huber_loss", g, output, target);
    return g.apply("huber_loss", {output, target, divisor}, Huber{delta});
  }
  Divisor divisor() const { return over(Divisor::elements); }
  std::string torch() const {
    return PythonCall("nn.HuberLoss")
        .key("reduction", reduction, "mean")
        .key("delta", delta, 1)
        .str();
  }
};

}  // namespace

LossType huber_loss() {
  return loss_type<HuberLoss>("huber_loss", "Squared difference, linear above delta.");
}

}  // namespace dpt::losses
