// softplus: log(1 + exp(beta * x)) / beta, or x if beta * x > threshold.
#pragma once

#include "graph/formulas/activation.h"

namespace dpt::formula {

struct Softplus {
  double beta = 1, threshold = 20;
  static constexpr Parameter<Softplus> kParameters[] = {
      {"beta", &Softplus::beta, "sharpness of the bend", kAboveZero},
      {"threshold", &Softplus::threshold, "the function is linear if beta * x is above this"}};
  static constexpr double kSamples[][2] = {{1, 20}, {2, 3}};
  static constexpr ActivationRow kRow{.name = "softplus",
                                      .gradient = "softplus_gradient",
                                      .torch = "torch.nn.Softplus",
                                      .example = "- softplus\n- softplus: {beta: 2, threshold: 30}",
                                      .summary = "Smooth ReLU: log(1 + exp(beta * x)) / beta.",
                                      .full_on_cuda = true,
                                      .kinks = {1.5}};

  template <class T>
  DPT_FORMULA T value(T x, T bend, T limit) {
    const T z = x * bend;
    return select(z > limit, x, log1p(exp(z)) / bend);
  }
  template <class T>
  DPT_FORMULA T gradient(T x, T dy, T bend, T limit) {
    const T z = x * bend;
    return select(z > limit, dy, dy * sigmoid(z));
  }
};

}  // namespace dpt::formula
