// hardswish: x * min(max(0, x + 3), 6) / 6.
#pragma once

#include "graph/formulas/activation.h"

namespace dpt::formula {

struct Hardswish {
  static constexpr ActivationRow kRow{.name = "hardswish",
                                      .gradient = "hardswish_gradient",
                                      .torch = "torch.nn.Hardswish",
                                      .example = "- hardswish",
                                      .summary = "x * min(max(x + 3, 0), 6) / 6.",
                                      .low = -5,
                                      .high = 5,
                                      .kinks = {-3, 3}};

  template <class T>
  DPT_FORMULA T value(T x) {
    const T up = x + T(3);
    const T held = select(up < T(0), T(0), select(up > T(6), T(6), up));
    return x * held * T(1.0 / 6);
  }
  template <class T>
  DPT_FORMULA T gradient(T x, T dy) {
    const T middle = dy * (x * T(1.0 / 3) + T(0.5));
    return select(x <= T(-3), T(0), select(x < T(3), middle, dy));
  }
};

}  // namespace dpt::formula
