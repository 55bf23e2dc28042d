// relu: max(0, x).
#pragma once

#include "graph/formulas/activation.h"

namespace dpt::formula {

struct Relu {
  static constexpr ActivationRow kRow{.name = "relu",
                                      .gradient = "relu_gradient",
                                      .torch = "torch.nn.ReLU",
                                      .example = "- relu",
                                      .summary = "Rectified linear unit: max(0, x).",
                                      .from_result = true,
                                      .selects = true,
                                      .gradient_selects = true,
                                      .kinks = {0}};

  template <class T>
  DPT_FORMULA T value(T x) {
    return relu(x);
  }
  template <class T>
  DPT_FORMULA T gradient(T y, T dy) {
    return relu_gradient(y, dy);
  }
};

}  // namespace dpt::formula
