// mse_loss: (x - t)^2.
#pragma once

#include "graph/formulas/loss.h"

namespace dpt::formula {

struct Mse {
  static constexpr LossSample kSamples[] = {{-2, 2, -2, 2}};
  static constexpr PointwiseLossRow kRow{
      .name = "mse_loss",
      .gradient = "mse_loss_gradient",
      .torch = "torch.nn.MSELoss",
      .example = "loss: mse_loss\nloss: {mse_loss: {reduction: sum}}",
      .summary = "Mean squared difference.",
      .estimates = true};

  template <class T>
  DPT_METHOD T value(T x, T t) const {
    return (x - t) * (x - t);
  }
  template <class T>
  DPT_METHOD T slope(T x, T t) const {
    return T(2) * (x - t);
  }
};

}  // namespace dpt::formula
