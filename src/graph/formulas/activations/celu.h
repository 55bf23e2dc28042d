// celu: x if x > 0, else alpha * (exp(x / alpha) - 1) (Barron, "Continuously Differentiable
// Exponential Linear Units", 2017).
#pragma once

#include "graph/formulas/activation.h"

namespace dpt::formula {

struct Celu {
  double alpha = 1;
  static constexpr Parameter<Celu> kParameters[] = {
      {"alpha",
       &Celu::alpha,
       "the output approaches -alpha for very negative x",
       {.text = "must not be 0", .holds = [](const double& value) { return value != 0; }}}};
  static constexpr double kSamples[][1] = {{0.7}};
  static constexpr ActivationRow kRow{
      .name = "celu",
      .gradient = "celu_gradient",
      .torch = "torch.nn.CELU",
      .example = "- celu\n- celu: {alpha: 0.5}",
      .summary =
          "elu with a continuous slope: x, or alpha * (exp(x / alpha) - 1) if x is negative."};

  template <class T>
  DPT_FORMULA T value(T x, T a) {
    return select(x > T(0), x, a * expm1(x / a));
  }
  template <class T>
  DPT_FORMULA T gradient(T x, T dy, T a) {
    return select(x > T(0), dy, dy * exp(x / a));
  }
};

}  // namespace dpt::formula
