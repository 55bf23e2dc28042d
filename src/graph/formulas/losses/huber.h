// huber_loss: d^2 / 2 if |d| <= delta, else delta (|d| - delta / 2), where d = x - t.
#pragma once

#include "graph/formulas/loss.h"

namespace dpt::formula {

struct Huber {
  double delta = 1;
  static constexpr Parameter<Huber> kParameters[] = {
      {"delta", &Huber::delta, "difference at which the loss becomes linear", kAboveZero}};
  static constexpr LossSample kSamples[] = {{1, 3, -2, 0, {0.5}}, {-1, 1, -1, 1, {4}}};
  static constexpr PointwiseLossRow kRow{
      .name = "huber_loss",
      .gradient = "huber_loss_gradient",
      .torch = "torch.nn.HuberLoss",
      .example = "loss: huber_loss\nloss: {huber_loss: {reduction: sum, delta: 0.5}}",
      .summary = "Squared difference, linear above delta.",
      .estimates = true};

  template <class T>
  DPT_METHOD T value(T x, T t) const {
    const T d = abs(x - t), bend = T(delta);
    return select(d <= bend, T(0.5) * d * d, bend * (d - T(0.5) * bend));
  }
  template <class T>
  DPT_METHOD T slope(T x, T t) const {
    const T d = x - t, bend = T(delta);
    return select(abs(d) <= bend, d, bend * sign(d));
  }
};

}  // namespace dpt::formula
