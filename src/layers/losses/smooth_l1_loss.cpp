// smooth_l1_loss: d^2 / (2 beta) if |d| < beta, else |d| - beta / 2, where d = y - t; any shape.
#include "layers/losses/common.h"

namespace dpt::losses {
namespace {

struct SmoothL1Loss : Reduction {
  double beta = 1;

  static KeyTable<SmoothL1Loss> keys() {
    return KeyTable<SmoothL1Loss>()
        .choice("reduction", &Reduction::reduction, {"mean", "sum", "none"}, kDoc)
        .optional("beta", &SmoothL1Loss::beta, "where the square ends; 0: l1_loss", kNotNegative);
  }
  ValueId build(GraphBuilder& g, ValueId output, ValueId target, ValueId divisor) const {
    require_values("smooth_l1_loss", g, output, target);
    return g.apply("smooth_l1_loss", {output, target, divisor}, SmoothL1{beta});
  }
  Divisor divisor() const { return over(Divisor::elements); }
  std::string torch() const {
    return PythonCall("nn.SmoothL1Loss")
        .key("reduction", reduction, "mean")
        .key("beta", beta, 1)
        .str();
  }
};

}  // namespace

LossType smooth_l1_loss() {
  return loss_type<SmoothL1Loss>("smooth_l1_loss", "The absolute difference, squared near zero.");
}

}  // namespace dpt::losses
