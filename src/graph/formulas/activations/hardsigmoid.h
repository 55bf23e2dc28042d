// hardsigmoid: min(max(0, x + 3), 6) / 6.
#pragma once

#include "graph/formulas/activation.h"

namespace dpt::formula {

struct Hardsigmoid {
  static constexpr ActivationRow kRow{.name = "hardsigmoid",
                                      .gradient = "hardsigmoid_gradient",
                                      .torch = "torch.nn.Hardsigmoid",
                                      .example = "- hardsigmoid",
                                      .summary = "min(max(x + 3, 0), 6) / 6.",
                                      .low = -5,
                                      .high = 5,
                                      .kinks = {-3, 3}};

  template <class T>
  DPT_FORMULA T value(T x) {
    const T up = x + T(3);
    return select(up < T(0), T(0), select(up > T(6), T(6), up)) / T(6);
  }
  template <class T>
  DPT_FORMULA T gradient(T x, T dy) {
    const T sixth(1.0F / 6.0F);  // a float in PyTorch too, even if T is double
    return select(x > T(-3), select(x < T(3), dy * sixth, T(0)), T(0));
  }
};

}  // namespace dpt::formula
