// softsign: x / (1 + |x|).
#pragma once

#include "graph/formulas/activation.h"

namespace dpt::formula {

struct Softsign {
  static constexpr ActivationRow kRow{.name = "softsign",
                                      .gradient = "softsign_gradient",
                                      .torch = "torch.nn.Softsign",
                                      .example = "- softsign",
                                      .summary = "x / (1 + |x|)."};

  template <class T>
  DPT_FORMULA T value(T x) {
    return x / (abs(x) + T(1));
  }
  template <class T>
  DPT_FORMULA T gradient(T x, T dy) {
    const T d = abs(x) + T(1);
    return dy / d / d;
  }
};

}  // namespace dpt::formula
