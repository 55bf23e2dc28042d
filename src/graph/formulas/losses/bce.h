// bce_loss: -(t log x + (1 - t) log(1 - x)) for probabilities x. As in PyTorch, logarithms are
// clamped to -100 and the slope's denominator to 1e-12f, because x may be 0 or 1.
#pragma once

#include "graph/formulas/loss.h"

namespace dpt::formula {

struct Bce {
  static constexpr LossSample kSamples[] = {{0.1, 0.9, 0, 1}};
  static constexpr PointwiseLossRow kRow{
      .name = "bce_loss",
      .gradient = "bce_loss_gradient",
      .torch = "torch.nn.BCELoss",
      .example = "loss: bce_loss\nloss: {bce_loss: {reduction: sum, weight: [1, 2]}}",
      .summary = "Binary cross entropy of probabilities between 0 and 1.",
      .outputs = OutputKind::probabilities,
      .needs =
          "all outputs of the model must be between 0 and 1; end it with a sigmoid, or take "
          "bce_with_logits_loss",
      .autocast_refuses =
          "its logarithm needs more precision than bf16 or fp16 has. Remove the last sigmoid and "
          "use bce_with_logits_loss",
      .unit_targets = true,
      .weight = true};

  template <class T>
  DPT_METHOD T value(T x, T t) const {
    const T yes = log(x), no = log1p(-x);
    return (t - T(1)) * select(no < T(-100), T(-100), no) - t * select(yes < T(-100), T(-100), yes);
  }
  template <class T>
  DPT_METHOD T slope(T x, T t) const {
    const T both = (T(1) - x) * x;
    return (x - t) / select(both < T(1e-12f), T(1e-12f), both);
  }
};

}  // namespace dpt::formula
