// logsigmoid: log(1 / (1 + exp(-x))).
#pragma once

#include "graph/formulas/activation.h"

namespace dpt::formula {

struct Logsigmoid {
  static constexpr ActivationRow kRow{.name = "logsigmoid",
                                      .gradient = "logsigmoid_gradient",
                                      .torch = "torch.nn.LogSigmoid",
                                      .example = "- logsigmoid",
                                      .summary = "log(1 / (1 + exp(-x))).",
                                      .row_major = true,
                                      .low = -6,
                                      .high = 6};

  template <class T>
  DPT_FORMULA T value(T x) {
    return select(x < T(0), x, T(0)) - log1p(exp(-abs(x)));
  }
  template <class T>
  DPT_FORMULA T gradient(T x, T dy) {
    return dy * sigmoid(-x);
  }
};

}  // namespace dpt::formula
