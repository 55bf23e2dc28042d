// tanhshrink: x - tanh(x).
#pragma once

#include "graph/formulas/activation.h"

namespace dpt::formula {

struct Tanhshrink {
  static constexpr ActivationRow kRow{.name = "tanhshrink",
                                      .gradient = "tanhshrink_gradient",
                                      .torch = "torch.nn.Tanhshrink",
                                      .example = "- tanhshrink",
                                      .summary = "x - tanh(x)."};

  template <class T>
  DPT_FORMULA T value(T x) {
    return x - tanh(x);
  }
  template <class T>
  DPT_FORMULA T gradient(T x, T dy) {
    const T t = tanh(x);
    return dy * (t * t);
  }
};

}  // namespace dpt::formula
