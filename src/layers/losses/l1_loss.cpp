// l1_loss: |y - t| for each element; any shape.
#include "layers/losses/common.h"

namespace dpt::losses {
namespace {

struct L1Loss : Reduction {
  static constexpr bool kEstimates = true;
  static constexpr Usage kUsage{"torch.nn.L1Loss",
                                "loss: l1_loss\n"
                                "loss: {l1_loss: {reduction: sum}}"};
  static KeyTable<L1Loss> keys() {
    return KeyTable<L1Loss>().choice("reduction", &Reduction::reduction, {"mean", "sum", "none"},
                                     kDoc);
  }
  ValueId build(GraphBuilder& g, ValueId output, ValueId target, ValueId divisor) const {
    require_values("l1_loss", g, output, target);
    return g.apply("l1_loss", {output, target, divisor});
  }
  Divisor divisor() const { return over(Divisor::elements); }
  std::string torch() const {
    return PythonCall("nn.L1Loss").key("reduction", reduction, "mean").str();
  }
};

}  // namespace

LossType l1_loss() { return loss_type<L1Loss>("l1_loss", "Mean absolute difference."); }

}  // namespace dpt::losses
