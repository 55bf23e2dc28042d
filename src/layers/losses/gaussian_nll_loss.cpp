// gaussian_nll_loss: the negative log-likelihood under a normal distribution whose mean and
// variance the model gives. The output [N, 2 D, ...] of targets [N, D, ...] has the means first.
// Nix and Weigend, 1994.
#include <algorithm>
#include <cmath>

#include "graph/formulas/losses/gaussian_nll.h"
#include "layers/formula_keys.h"
#include "layers/losses/common.h"

namespace dpt::losses {
namespace {

constexpr std::string_view kGaussianNllTorch = R"py(class GaussianNLL(nn.GaussianNLLLoss):
    """The first half of the outputs are means, the second variances or their logarithms."""

    def __init__(self, log_variance=False, **settings):
        super().__init__(**settings)
        self.log_variance = log_variance

    def forward(self, output, target):
        mean, variance = output.chunk(2, dim=1)
        return super().forward(mean, target, variance.exp() if self.log_variance else variance)
)py";

using formula::GaussianNll;

struct GaussianNllLoss : GaussianNll, Reduction {
  static constexpr std::string_view kTorchClass = kGaussianNllTorch;
  static constexpr Usage kUsage{
      "torch.nn.GaussianNLLLoss",
      "loss: gaussian_nll_loss\n"
      "loss: {gaussian_nll_loss: {log_variance: true, full: true, eps: 1e-6, reduction: sum}}"};

  static KeyTable<GaussianNllLoss> keys() {
    KeyTable<GaussianNllLoss> out;
    out.choice("reduction", &Reduction::reduction, {"mean", "sum", "none"}, kDoc);
    add_parameters<GaussianNll>(out);
    return out;
  }
  ValueId build(GraphBuilder& g, ValueId output, ValueId target, ValueId divisor) const {
    const TensorDesc y = g.desc(output), t = g.desc(target);
    if (t.dtype != DType::f32)
      fail(Fault::spec,
           "gaussian_nll_loss takes real numbers, but the targets are integers {}{}: store them as "
           "float32 (csv: leave `classes` and `class_names` out)",
           name_of(t.dtype), t.shape.str());
    if (t.shape.rank() < 2 || y.shape != t.shape.with(1, 2 * t.shape[1]))
      fail(Fault::spec,
           "gaussian_nll_loss takes a mean and a variance for each target: for the targets {} the "
           "output must be {}, not {}",
           t.shape.str(), t.shape.rank() < 2 ? "[N, 2 D]" : t.shape.with(1, 2 * t.shape[1]).str(),
           y.shape.str());
    return g.apply("gaussian_nll_loss", {output, target, divisor},
                   static_cast<const GaussianNll&>(*this));
  }
  // See LossType::variance.
  double variance(double output) const {
    return std::max(log_variance ? std::exp(output) : output, eps);
  }
  Divisor divisor() const { return over(Divisor::half_elements); }
};

}  // namespace

LossType gaussian_nll_loss() {
  LossType type = loss_type<GaussianNllLoss>(
      "gaussian_nll_loss",
      "Output [N, 2 D] for targets [N, D]: negative log-likelihood of normal distributions with "
      "the "
      "means [:, :D] and the variances [:, D:]. PyTorch refuses negative variances.");
  type.variance = [](const std::any& s, double output) {
    return std::any_cast<const GaussianNllLoss&>(s).variance(output);
  };
  type.needs =
      "variances, the second half of the outputs, must be positive: use `log_variance: true`, or "
      "end their branch with softplus";
  return type;
}

}  // namespace dpt::losses
