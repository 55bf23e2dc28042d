// gelu_tanh: the approximation of gelu with tanh (Hendrycks and Gimpel, 2016).
#pragma once

#include "graph/formulas/activation.h"

namespace dpt::formula {

struct GeluTanh {
  static constexpr ActivationRow kRow{.name = "gelu_tanh", .gradient = "gelu_tanh_gradient"};

  template <class T>
  DPT_FORMULA T value(T x) {
    const T u = T(0.79788456080286535588) * (x + T(0.044715) * x * x * x);
    return T(0.5) * x * (T(1) + tanh(u));
  }
  template <class T>
  DPT_FORMULA T gradient(T x, T dy) {
    const T t = tanh(T(0.79788456080286535588) * (x + T(0.044715) * x * x * x));
    const T du = T(0.79788456080286535588) * (T(1) + T(0.134145) * x * x);
    return dy * (T(0.5) * (T(1) + t) + T(0.5) * x * (T(1) - t * t) * du);
  }
};

}  // namespace dpt::formula
