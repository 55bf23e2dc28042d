// poisson_nll_loss: exp(x) - t x, or x - t log(x + eps) without log_input: the negative
// log-likelihood of counts t. `full` adds Stirling's approximation of log(t!) for t above 1.
#pragma once

#include "graph/formulas/loss.h"

namespace dpt::formula {

struct PoissonNll {
  bool log_input = true, full = false;
  double eps = 1e-8;
  static constexpr Parameter<PoissonNll> kParameters[] = {
      {"log_input", &PoissonNll::log_input,
       "whether outputs are the logarithms of the expected counts"},
      {"full", &PoissonNll::full,
       "whether to add Stirling's approximation of log(t!), which changes no gradient"},
      {"eps", &PoissonNll::eps,
       "without log_input, small number added to outputs before their logarithm", kFromZero}};
  static constexpr LossSample kSamples[] = {{-2, 2, 0, 5, {1, 0, 1e-8}},
                                            {0.5, 3, 0, 5, {0, 0, 0.01}},
                                            {-2, 2, 0, 5, {1, 1, 1e-8}},
                                            {0.5, 3, 0, 5, {0, 1, 0.01}}};
  static constexpr PointwiseLossRow kRow{
      .name = "poisson_nll_loss",
      .gradient = "poisson_nll_loss_gradient",
      .torch = "torch.nn.PoissonNLLLoss",
      .example =
          "loss: poisson_nll_loss\n"
          "loss: {poisson_nll_loss: {log_input: false, full: true, eps: 1e-6, reduction: sum}}",
      .summary = "Negative log-likelihood of counts (Poisson).",
      .needs =
          "outputs must be below 88 with log_input, and positive without it: end the model "
          "with softplus then"};

  template <class T>
  DPT_METHOD T value(T x, T t) const {
    const T term = log_input ? exp(x) - t * x : x - t * log(x + T(eps));
    if (!full) return term;
    constexpr double kTwoPi = 6.283185307179586;
    return term + select(t > T(1), t * log(t) - t + T(0.5f) * log(T(kTwoPi) * t), T(0));
  }
  template <class T>
  DPT_METHOD T slope(T x, T t) const {
    return log_input ? exp(x) - t : T(1) - t / (x + T(eps));
  }
  double estimate(double x) const { return log_input ? exp(x) : x; }
};

}  // namespace dpt::formula
