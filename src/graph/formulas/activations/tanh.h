// tanh.
#pragma once

#include "graph/formulas/activation.h"

namespace dpt::formula {

struct Tanh {
  static constexpr ActivationRow kRow{.name = "tanh",
                                      .gradient = "tanh_gradient",
                                      .torch = "torch.nn.Tanh",
                                      .example = "- tanh",
                                      .summary = "Hyperbolic tangent.",
                                      .from_result = true};

  template <class T>
  DPT_FORMULA T value(T x) {
    return tanh(x);
  }
  template <class T>
  DPT_FORMULA T gradient(T y, T dy) {
    return dy * (T(1) - y * y);
  }
};

}  // namespace dpt::formula
