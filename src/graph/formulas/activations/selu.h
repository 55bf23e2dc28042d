// selu: Klambauer et al., "Self-Normalizing Neural Networks", 2017, equation 2
// and its constants.
#pragma once

#include "graph/formulas/activation.h"

namespace dpt::formula {

struct Selu {
  static constexpr ActivationRow kRow{.name = "selu",
                                      .gradient = "selu_gradient",
                                      .torch = "torch.nn.SELU",
                                      .example = "- selu",
                                      .summary = "Scaled exponential linear unit.",
                                      .kinks = {0}};

  template <class T>
  DPT_FORMULA T value(T x) {
    return T(1.0507009873554804934193349852946) * elu(x, T(1.6732632423543772848170429916717));
  }
  template <class T>
  DPT_FORMULA T gradient(T x, T dy) {
    return T(1.0507009873554804934193349852946) *
           elu_gradient(x, dy, T(1.6732632423543772848170429916717));
  }
};

}  // namespace dpt::formula
