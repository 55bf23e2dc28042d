// silu: x * sigmoid(x).
#pragma once

#include "graph/formulas/activation.h"

namespace dpt::formula {

struct Silu {
  static constexpr ActivationRow kRow{.name = "silu",
                                      .gradient = "silu_gradient",
                                      .torch = "torch.nn.SiLU",
                                      .example = "- silu",
                                      .summary = "Sigmoid linear unit: x * sigmoid(x).",
                                      .low = -6,
                                      .high = 6};

  template <class T>
  DPT_FORMULA T value(T x) {
    return x * sigmoid(x);
  }
  template <class T>
  DPT_FORMULA T gradient(T x, T dy) {
    const T s = sigmoid(x);
    return dy * (s * (T(1) + x * (T(1) - s)));
  }
};

}  // namespace dpt::formula
