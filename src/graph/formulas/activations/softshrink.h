// softshrink: x moved towards 0 by lambd, or 0 if |x| <= lambd.
#pragma once

#include "graph/formulas/activation.h"

namespace dpt::formula {

struct Softshrink {
  double lambd = 0.5;
  static constexpr Parameter<Softshrink> kParameters[] = {
      {"lambd", &Softshrink::lambd, "how far x is moved towards 0", kFromZero}};
  static constexpr double kSamples[][1] = {{0.5}};
  static constexpr ActivationRow kRow{
      .name = "softshrink",
      .gradient = "softshrink_gradient",
      .torch = "torch.nn.Softshrink",
      .example = "- softshrink\n- softshrink: {lambd: 1}",
      .summary = "x moved towards 0 by lambd, or 0 if x is between -lambd and lambd.",
      .gradient_selects = true,
      .kinks = {-0.5, 0.5}};

  template <class T>
  DPT_FORMULA T value(T x, T l) {
    return select(x > l, x - l, select(x < -l, x + l, x * T(0)));  // keeps nan
  }
  template <class T>
  DPT_FORMULA T gradient(T x, T dy, T l) {
    return select(abs(x) <= l, T(0), dy);
  }
};

}  // namespace dpt::formula
