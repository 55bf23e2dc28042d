// threshold: x, or `value` if x <= threshold.
#pragma once

#include "graph/formulas/activation.h"

namespace dpt::formula {

struct Threshold {
  double threshold = 0, replacement = 0;
  static constexpr Parameter<Threshold> kParameters[] = {
      {"threshold", &Threshold::threshold, "largest x that is replaced", kRequired},
      {"value", &Threshold::replacement, "what replaces it", kRequired}};
  static constexpr double kSamples[][2] = {{-0.5, 2}};
  static constexpr ActivationRow kRow{.name = "threshold",
                                      .gradient = "threshold_gradient",
                                      .torch = "torch.nn.Threshold",
                                      .example = "- threshold: {threshold: 0.1, value: 20}",
                                      .summary = "x, or `value` if x is at most `threshold`.",
                                      .gradient_selects = true,
                                      .kinks = {-0.5}};

  template <class T>
  DPT_FORMULA T value(T x, T limit, T otherwise) {
    return select(x <= limit, otherwise, x);
  }
  template <class T>
  DPT_FORMULA T gradient(T x, T dy, T limit, T) {
    return select(x <= limit, T(0), dy);
  }
};

}  // namespace dpt::formula
