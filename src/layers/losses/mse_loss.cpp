// mse_loss: (y - t)^2 for each element; any shape.
#include "layers/losses/common.h"

namespace dpt::losses {
namespace {

struct MseLoss : Reduction {
  static constexpr bool kEstimates = true;
  static constexpr Usage kUsage{"torch.nn.MSELoss",
                                "loss: mse_loss\n"
                                "loss: {mse_loss: {reduction: sum}}"};
  static KeyTable<MseLoss> keys() {
    return KeyTable<MseLoss>().choice("reduction", &Reduction::reduction, {"mean", "sum", "none"},
                                      kDoc);
  }
  ValueId build(GraphBuilder& g, ValueId output, ValueId target, ValueId divisor) const {
    require_values("mse_loss", g, output, target);
    return g.apply("mse_loss", {output, target, divisor});
  }
  Divisor divisor() const { return over(Divisor::elements); }
  std::string torch() const {
    return PythonCall("nn.MSELoss").key("reduction", reduction, "mean").str();
  }
};

}  // namespace

LossType mse_loss() { return loss_type<MseLoss>("mse_loss", "Mean squared difference."); }

}  // namespace dpt::losses
