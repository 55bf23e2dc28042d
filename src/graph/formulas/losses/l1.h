// l1_loss: |x - t|; the slope is 0 where they are equal.
#pragma once

#include "graph/formulas/loss.h"

namespace dpt::formula {

struct L1 {
  static constexpr LossSample kSamples[] = {{1, 3, -2, 0}};
  static constexpr PointwiseLossRow kRow{.name = "l1_loss",
                                         .gradient = "l1_loss_gradient",
                                         .torch = "torch.nn.L1Loss",
                                         .example =
                                             "loss: l1_loss\n"
                                             "loss: {l1_loss: {reduction: sum}}",
                                         .summary = "Mean absolute difference.",
                                         .estimates = true};

  template <class T>
  DPT_METHOD T value(T x, T t) const {
    return abs(x - t);
  }
  template <class T>
  DPT_METHOD T slope(T x, T t) const {
    return sign(x - t);
  }
};

}  // namespace dpt::formula
