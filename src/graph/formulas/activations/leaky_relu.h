// leaky_relu: x if x > 0, else negative_slope * x.
#pragma once

#include "graph/formulas/activation.h"

namespace dpt::formula {

struct LeakyRelu {
  double negative_slope = 0.01;
  static constexpr Parameter<LeakyRelu> kParameters[] = {
      {"negative_slope", &LeakyRelu::negative_slope, "slope for negative x"}};
  static constexpr double kSamples[][1] = {{0.2}};
  static constexpr ActivationRow kRow{
      .name = "leaky_relu",
      .gradient = "leaky_relu_gradient",
      .torch = "torch.nn.LeakyReLU",
      .example = "- leaky_relu\n- leaky_relu: {negative_slope: 0.2}",
      .summary = "x, or negative_slope * x if x is negative.",
      .kinks = {0}};

  template <class T>
  DPT_FORMULA T value(T x, T slope) {
    return leaky_relu(x, slope);
  }
  template <class T>
  DPT_FORMULA T gradient(T x, T dy, T slope) {
    return leaky_relu_gradient(x, dy, slope);
  }
};

}  // namespace dpt::formula
