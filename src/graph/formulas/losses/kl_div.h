// kl_div: t (log t - x), 0 for t = 0, for log-probabilities x, such as the output of log_softmax.
// With log_target, targets are log-probabilities, too. As in PyTorch, `mean` is over all elements;
// `batchmean` gives the mathematical divergence.
#pragma once

#include "graph/formulas/loss.h"

namespace dpt::formula {

struct KlDiv {
  bool log_target = false;
  static constexpr Parameter<KlDiv> kParameters[] = {
      {"log_target", &KlDiv::log_target, "whether targets are log-probabilities"}};
  static constexpr LossSample kSamples[] = {{-4, 0, 0, 1}, {-4, 0, -4, 0, {1}}};
  static constexpr PointwiseLossRow kRow{
      .name = "kl_div",
      .gradient = "kl_div_gradient",
      .torch = "torch.nn.KLDivLoss",
      .example =
          "loss: {kl_div: batchmean}\n"
          "loss: {kl_div: {reduction: sum, log_target: true}}",
      .summary = "Kullback-Leibler divergence of log-probabilities.",
      .outputs = OutputKind::log_probabilities,
      .batchmean = true};

  template <class T>
  DPT_METHOD T value(T x, T t) const {
    if (log_target) return exp(t) * (t - x);
    return select(t == T(0), T(0), t * log(t)) - t * x;
  }
  template <class T>
  DPT_METHOD T slope(T, T t) const {
    return log_target ? -exp(t) : -t;
  }
  double estimate(double x) const { return log_target ? x : exp(x); }
};

}  // namespace dpt::formula
