// hardshrink: x, or 0 if |x| <= lambd. The gradient depends on y as it does on x.
#pragma once

#include "graph/formulas/activation.h"

namespace dpt::formula {

struct Hardshrink {
  double lambd = 0.5;
  static constexpr Parameter<Hardshrink> kParameters[] = {
      {"lambd", &Hardshrink::lambd, "largest distance from 0 that becomes 0"}};
  static constexpr double kSamples[][1] = {{0.5}};
  static constexpr ActivationRow kRow{.name = "hardshrink",
                                      .gradient = "hardshrink_gradient",
                                      .torch = "torch.nn.Hardshrink",
                                      .example = "- hardshrink\n- hardshrink: {lambd: 1}",
                                      .summary = "x, or 0 if x is between -lambd and lambd.",
                                      .from_result = true,
                                      .selects = true,
                                      .gradient_selects = true,
                                      .kinks = {-0.5, 0.5}};

  template <class T>
  DPT_FORMULA T value(T x, T l) {
    return select(abs(x) <= l, T(0), x);
  }
  template <class T>
  DPT_FORMULA T gradient(T y, T dy, T l) {
    return select(abs(y) <= l, T(0), dy);
  }
};

}  // namespace dpt::formula
