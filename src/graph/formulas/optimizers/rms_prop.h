// rms_prop: RMSprop.
#pragma once

#include "graph/formulas/optimizer.h"

namespace dpt::formula {

template <class T>
struct RmsProp {
  T lr, alpha, one_minus_alpha, eps, momentum = 0, weight_decay = 0;
  bool centered = false, maximize = false;

  static constexpr int kStates = 3;
  template <class U>
  constexpr RmsProp<U> rounded() const {
    return {.lr = U(lr),
            .alpha = U(alpha),
            .one_minus_alpha = U(one_minus_alpha),
            .eps = U(eps),
            .momentum = U(momentum),
            .weight_decay = U(weight_decay),
            .centered = centered,
            .maximize = maximize};
  }
};

// States: square_avg, momentum_buffer (momentum > 0), grad_avg (centered).
template <class T>
DPT_FORMULA void rms_prop(const RmsProp<T>& s, T& weight, T& square_avg, T* momentum_buffer,
                          T* grad_avg, T gradient) {
  T g = s.maximize ? -gradient : gradient;
  if (s.weight_decay != 0) g = g + s.weight_decay * weight;
  square_avg = square_avg * s.alpha + s.one_minus_alpha * g * g;
  T square = square_avg;
  if (s.centered) {
    const T mean = *grad_avg + s.one_minus_alpha * (g - *grad_avg);
    *grad_avg = mean;
    square = square - mean * mean;
  }
  const T denominator = square_root(square) + s.eps;
  if (s.momentum > 0) {
    const T b = *momentum_buffer * s.momentum + g / denominator;
    *momentum_buffer = b;
    weight = weight - s.lr * b;
  } else {
    weight = weight - s.lr * g / denominator;
  }
}

template <class T>
DPT_FORMULA void update(const RmsProp<T>& s, T& weight, T* const* state, T gradient) {
  rms_prop(s, weight, *state[0], state[1], state[2], gradient);
}

}  // namespace dpt::formula
