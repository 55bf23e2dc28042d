// gelu: x * Phi(x), Phi: the standard normal distribution (Hendrycks and
// Gimpel, "Gaussian Error Linear Units", 2016). layers/activations/gelu.cpp
// chooses between it and gelu_tanh.
#pragma once

#include "graph/formulas/activation.h"

namespace dpt::formula {

struct Gelu {
  static constexpr ActivationRow kRow{.name = "gelu", .gradient = "gelu_gradient"};

  template <class T>
  DPT_FORMULA T value(T x) {
    return T(0.5) * x * (T(1) + erf(x * T(0.70710678118654752440)));
  }
  template <class T>
  DPT_FORMULA T gradient(T x, T dy) {
    const T share = T(0.5) * (T(1) + erf(x * T(0.70710678118654752440)));
    const T density = exp(T(-0.5) * x * x) * T(0.39894228040143267794);
    return dy * (share + x * density);
  }
};

}  // namespace dpt::formula
