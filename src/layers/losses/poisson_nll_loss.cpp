// poisson_nll_loss: exp(y) - t y for each element, or y - t log(y + eps) without log_input: the
// negative log-likelihood of counts t. With full, plus Stirling's approximation of log(t!) for t
// above 1. Any shape.
#include <cmath>

#include "layers/losses/common.h"

namespace dpt::losses {
namespace {

struct PoissonNllLoss : Reduction {
  static constexpr Usage kUsage{
      "torch.nn.PoissonNLLLoss",
      "loss: poisson_nll_loss\n"
      "loss: {poisson_nll_loss: {log_input: false, full: true, eps: 1e-6, reduction: sum}}"};

  bool log_input = true;
  bool full = false;
  double eps = 1e-8;

  static KeyTable<PoissonNllLoss> keys() {
    using S = PoissonNllLoss;
    return KeyTable<S>()
        .choice("reduction", &Reduction::reduction, {"mean", "sum", "none"}, kDoc)
        .optional("log_input", &S::log_input,
                  "whether outputs are the logarithms of the expected counts")
        .optional("full", &S::full,
                  "whether to add Stirling's approximation of log(t!), which changes no gradient")
        .optional("eps", &S::eps,
                  "without log_input, small number added to outputs before their logarithm",
                  kNotNegative);
  }
  ValueId build(GraphBuilder& g, ValueId output, ValueId target, ValueId divisor) const {
    require_values("poisson_nll_loss", g, output, target);
    return g.apply("poisson_nll_loss", {output, target, divisor}, PoissonNll{log_input, full, eps});
  }
  Divisor divisor() const { return over(Divisor::elements); }
  double estimate(double output) const { return log_input ? std::exp(output) : output; }
  std::string torch() const {
    return PythonCall("nn.PoissonNLLLoss")
        .key("log_input", log_input, true)
        .key("full", full, false)
        .key("eps", eps, 1e-8)
        .key("reduction", reduction, "mean")
        .str();
  }
};

}  // namespace

LossType poisson_nll_loss() {
  LossType type =
      loss_type<PoissonNllLoss>("poisson_nll_loss", "Negative log-likelihood of counts (Poisson).");
  type.needs =
      "outputs must be below 88 with log_input, and positive without it: end the model with "
      "softplus then";
  return type;
}

}  // namespace dpt::losses
