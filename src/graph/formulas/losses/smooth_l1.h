// smooth_l1_loss: d^2 / (2 beta) if |d| < beta, else |d| - beta / 2, where d = x - t. beta = 0
// gives l1_loss, as in PyTorch.
#pragma once

#include "graph/formulas/loss.h"

namespace dpt::formula {

struct SmoothL1 {
  double beta = 1;
  static constexpr Parameter<SmoothL1> kParameters[] = {
      {"beta", &SmoothL1::beta,
       "difference at which the loss becomes linear; 0: the same as l1_loss", kFromZero}};
  static constexpr LossSample kSamples[] = {{1, 3, -2, 0, {0.5}}, {-1, 1, -1, 1, {4}}};
  static constexpr PointwiseLossRow kRow{
      .name = "smooth_l1_loss",
      .gradient = "smooth_l1_loss_gradient",
      .torch = "torch.nn.SmoothL1Loss",
      .example = "loss: smooth_l1_loss\nloss: {smooth_l1_loss: {reduction: sum, beta: 0.5}}",
      .summary = "Absolute difference, squared below beta.",
      .estimates = true};

  template <class T>
  DPT_METHOD T value(T x, T t) const {
    const T d = abs(x - t), bend = T(beta);
    return select(d < bend, T(0.5) * d * d / bend, d - T(0.5) * bend);
  }
  template <class T>
  DPT_METHOD T slope(T x, T t) const {
    const T d = x - t, bend = T(beta);
    return select(abs(d) < bend, d / bend, sign(d));
  }
};

}  // namespace dpt::formula
