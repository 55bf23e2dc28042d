// half_square: (y - t)^2 / 2 for each element, from operators that exist.
#include "layers/losses/common.h"

namespace dpt::losses {
namespace {

struct HalfSquare : Reduction {
  static constexpr bool kEstimates = true;
  static constexpr Usage kUsage{"", "loss: half_square\nloss: {half_square: {reduction: sum}}"};
  static KeyTable<HalfSquare> keys() {
    return KeyTable<HalfSquare>().choice("reduction", &Reduction::reduction,
                                         {"mean", "sum", "none"}, kDoc);
  }
  // Huber's loss with a delta that no difference reaches.
  ValueId build(GraphBuilder& g, ValueId output, ValueId target, ValueId divisor) const {
    require_values("half_square", g, output, target);
    return g.apply("huber_loss", {output, target, divisor}, Huber{1e30});
  }
  Divisor divisor() const { return over(Divisor::elements); }
  std::string torch() const { return "HalfSquare()"; }
};

}  // namespace

LossType half_square() { return loss_type<HalfSquare>("half_square", "Half of the square."); }

}  // namespace dpt::losses
