// relu6: min(max(0, x), 6). The gradient depends on y as it does on x.
#pragma once

#include "graph/formulas/activation.h"

namespace dpt::formula {

struct Relu6 {
  static constexpr ActivationRow kRow{.name = "relu6",
                                      .gradient = "relu6_gradient",
                                      .torch = "torch.nn.ReLU6",
                                      .example = "- relu6",
                                      .summary = "min(max(0, x), 6).",
                                      .from_result = true,
                                      .gradient_selects = true,
                                      .low = -3,
                                      .high = 9,
                                      .kinks = {0, 6}};

  template <class T>
  DPT_FORMULA T value(T x) {
    return select(x <= T(0), T(0), select(x >= T(6), T(6), x));
  }
  template <class T>
  DPT_FORMULA T gradient(T y, T dy) {
    return select(y <= T(0), T(0), select(y >= T(6), T(0), dy));
  }
};

}  // namespace dpt::formula
