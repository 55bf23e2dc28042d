// half_square: (x - t)^2 / 2.
#pragma once

#include "graph/formulas/loss.h"

namespace dpt::formula {

struct HalfSquare {
  static constexpr LossSample kSamples[] = {{-2, 2, -2, 2}};
  static constexpr PointwiseLossRow kRow{
      .name = "half_square",
      .gradient = "half_square_gradient",
      .example = "loss: half_square\nloss: {half_square: {reduction: sum}}",
      .summary = "Half of the square."};

  template <class T>
  DPT_METHOD T value(T x, T t) const {
    return T(0.5) * (x - t) * (x - t);
  }
  template <class T>
  DPT_METHOD T slope(T x, T t) const {
    return x - t;
  }
};

}  // namespace dpt::formula
