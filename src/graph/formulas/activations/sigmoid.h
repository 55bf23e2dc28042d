// sigmoid: 1 / (1 + exp(-x)).
#pragma once

#include "graph/formulas/activation.h"

namespace dpt::formula {

struct Sigmoid {
  static constexpr ActivationRow kRow{.name = "sigmoid",
                                      .gradient = "sigmoid_gradient",
                                      .torch = "torch.nn.Sigmoid",
                                      .example = "- sigmoid",
                                      .summary = "1 / (1 + exp(-x)).",
                                      .from_result = true,
                                      .low = -6,
                                      .high = 6};

  template <class T>
  DPT_FORMULA T value(T x) {
    return sigmoid(x);
  }
  template <class T>
  DPT_FORMULA T gradient(T y, T dy) {
    return dy * ((T(1) - y) * y);
  }
};

}  // namespace dpt::formula
