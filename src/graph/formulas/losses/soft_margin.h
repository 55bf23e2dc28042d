// soft_margin_loss: log(1 + exp(-t x)), with targets t of -1 and 1. PyTorch's overflows for large
// -t x.
#pragma once

#include "graph/formulas/loss.h"

namespace dpt::formula {

struct SoftMargin {
  static constexpr LossSample kSamples[] = {{-4, 4, -1, 1}};
  static constexpr PointwiseLossRow kRow{
      .name = "soft_margin_loss",
      .gradient = "soft_margin_loss_gradient",
      .torch = "torch.nn.SoftMarginLoss",
      .example = "loss: soft_margin_loss\nloss: {soft_margin_loss: {reduction: sum}}",
      .summary = "Logistic loss of scores (logits), for targets of -1 and 1.",
      .outputs = OutputKind::logits,
      .signs = true};

  template <class T>
  DPT_METHOD T value(T x, T t) const {
    const T z = -t * x;
    return select(z > T(0), z, T(0)) + log1p(exp(-abs(z)));
  }
  template <class T>
  DPT_METHOD T slope(T x, T t) const {
    return -t * reciprocal(T(1) + exp(t * x));
  }
};

}  // namespace dpt::formula
