// elu: x if x > 0, else alpha * (exp(x) - 1) (Clevert et al., 2016).
#pragma once

#include "graph/formulas/activation.h"

namespace dpt::formula {

struct Elu {
  double alpha = 1;
  static constexpr Parameter<Elu> kParameters[] = {
      {"alpha", &Elu::alpha, "the output approaches -alpha for very negative x"}};
  static constexpr double kSamples[][1] = {{0.7}};
  static constexpr ActivationRow kRow{
      .name = "elu",
      .gradient = "elu_gradient",
      .torch = "torch.nn.ELU",
      .example = "- elu\n- elu: {alpha: 0.5}",
      .summary =
          "Exponential linear unit: x, or alpha * (exp(x) - 1) if x is "
          "negative.",
      .kinks = {0}};

  template <class T>
  DPT_FORMULA T value(T x, T a) {
    return elu(x, a);
  }
  template <class T>
  DPT_FORMULA T gradient(T x, T dy, T a) {
    return elu_gradient(x, dy, a);
  }
};

}  // namespace dpt::formula
