// soft_margin_loss: log(1 + exp(-t y)) for each element, with targets t of -1 and 1; any shape.
#include "layers/losses/common.h"

namespace dpt::losses {
namespace {

struct SoftMarginLoss : Reduction {
  static constexpr OutputKind kOutputs = OutputKind::logits;
  static constexpr bool kSigns = true;
  static constexpr Usage kUsage{"torch.nn.SoftMarginLoss",
                                "loss: soft_margin_loss\n"
                                "loss: {soft_margin_loss: {reduction: sum}}"};
  static KeyTable<SoftMarginLoss> keys() {
    return KeyTable<SoftMarginLoss>().choice("reduction", &Reduction::reduction,
                                             {"mean", "sum", "none"}, kDoc);
  }
  ValueId build(GraphBuilder& g, ValueId output, ValueId target, ValueId divisor) const {
    require_values("soft_margin_loss", g, output, target);
    return g.apply("soft_margin_loss", {output, target, divisor});
  }
  Divisor divisor() const { return over(Divisor::elements); }
  std::string torch() const {
    return PythonCall("nn.SoftMarginLoss").key("reduction", reduction, "mean").str();
  }
};

}  // namespace

LossType soft_margin_loss() {
  return loss_type<SoftMarginLoss>("soft_margin_loss",
                                   "Logistic loss of scores (logits), for targets of -1 and 1.");
}

}  // namespace dpt::losses
