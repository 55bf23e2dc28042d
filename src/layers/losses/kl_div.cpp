// kl_div: t (log t - y) for each element, 0 if t = 0, for log-probabilities y, such as the output
// of log_softmax. With log_target, targets are log-probabilities too. Any shape. As in PyTorch,
// `mean` is over all elements; `batchmean` gives the mathematical divergence.
#include <cmath>

#include "layers/losses/common.h"

namespace dpt::losses {
namespace {

struct KlDivLoss : Reduction {
  static constexpr OutputKind kOutputs = OutputKind::log_probabilities;
  static constexpr Usage kUsage{"torch.nn.KLDivLoss",
                                "loss: {kl_div: batchmean}\n"
                                "loss: {kl_div: {reduction: sum, log_target: true}}"};

  bool log_target = false;

  static KeyTable<KlDivLoss> keys() {
    return KeyTable<KlDivLoss>()
        .choice("reduction", &Reduction::reduction, {"mean", "sum", "batchmean", "none"}, kDoc)
        .optional("log_target", &KlDivLoss::log_target, "whether targets are log-probabilities");
  }
  ValueId build(GraphBuilder& g, ValueId output, ValueId target, ValueId divisor) const {
    require_values("kl_div", g, output, target);
    return g.apply("kl_div", {output, target, divisor}, KlDiv{log_target});
  }
  Divisor divisor() const {
    return over(reduction == "batchmean" ? Divisor::samples : Divisor::elements);
  }
  double estimate(double output) const { return log_target ? output : std::exp(output); }
  std::string torch() const {
    return PythonCall("nn.KLDivLoss")
        .key("reduction", reduction, "mean")
        .key("log_target", log_target, false)
        .str();
  }
};

}  // namespace

LossType kl_div() {
  return loss_type<KlDivLoss>("kl_div", "Kullback-Leibler divergence of log-probabilities.");
}

}  // namespace dpt::losses
