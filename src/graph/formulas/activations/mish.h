// mish: x * tanh(log(1 + exp(x))) (Misra, 2020).
#pragma once

#include "graph/formulas/activation.h"

namespace dpt::formula {

struct Mish {
  static constexpr ActivationRow kRow{.name = "mish",
                                      .gradient = "mish_gradient",
                                      .torch = "torch.nn.Mish",
                                      .example = "- mish",
                                      .summary = "x * tanh(log(1 + exp(x))).",
                                      .low = -6,
                                      .high = 6};

  template <class T>
  DPT_FORMULA T value(T x) {
    return x * tanh(log1p(exp(x)));
  }
  template <class T>
  DPT_FORMULA T gradient(T x, T dy) {
    const T t = tanh(log1p(exp(x)));
    return dy * (t + x * sigmoid(x) * (T(1) - t * t));
  }
};

}  // namespace dpt::formula
