// smooth_l1_loss: d^2 / (2 beta) if |d| < beta, else |d| - beta / 2, where d = y - t; any shape.
#include "layers/losses/common.h"

namespace dpt::losses {
namespace {

struct SmoothL1Loss : Reduction {
  static constexpr bool kEstimates = true;
  static constexpr Usage kUsage{"torch.nn.SmoothL1Loss",
                                "loss: smooth_l1_loss\n"
                                "loss: {smooth_l1_loss: {reduction: sum, beta: 0.5}}"};

  double beta = 1;

  static KeyTable<SmoothL1Loss> keys() {
    return KeyTable<SmoothL1Loss>()
        .choice("reduction", &Reduction::reduction, {"mean", "sum", "none"}, kDoc)
        .optional("beta", &SmoothL1Loss::beta,
                  "difference at which the loss becomes linear; 0: the same as l1_loss",
                  kNotNegative);
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
  return loss_type<SmoothL1Loss>("smooth_l1_loss", "Absolute difference, squared below beta.");
}

}  // namespace dpt::losses
