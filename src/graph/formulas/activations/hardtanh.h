// hardtanh: x, but at least min_val and at most max_val. The gradient depends on y as it does on x.
#pragma once

#include "graph/formulas/activation.h"

namespace dpt::formula {

struct Hardtanh {
  double min_val = -1, max_val = 1;
  static constexpr Parameter<Hardtanh> kParameters[] = {
      {"min_val", &Hardtanh::min_val, "smallest result"},
      {"max_val", &Hardtanh::max_val, "largest result"}};
  static constexpr double kSamples[][2] = {{-0.5, 2}};
  static constexpr ActivationRow kRow{.name = "hardtanh",
                                      .gradient = "hardtanh_gradient",
                                      .torch = "torch.nn.Hardtanh",
                                      .example = "- hardtanh\n- hardtanh: {min_val: 0, max_val: 4}",
                                      .summary = "x, but at least min_val and at most max_val.",
                                      .from_result = true,
                                      .gradient_selects = true,
                                      .kinks = {-0.5, 2}};

  // Says what is wrong with the parameters; null: nothing is.
  const char* refuses() const {
    return max_val > min_val ? nullptr : "max_val must be larger than min_val, as in torch";
  }

  template <class T>
  DPT_FORMULA T value(T x, T low, T high) {
    return select(x <= low, low, select(x >= high, high, x));
  }
  template <class T>
  DPT_FORMULA T gradient(T y, T dy, T low, T high) {
    return select(y <= low, T(0), select(y >= high, T(0), dy));
  }
};

}  // namespace dpt::formula
