// lion: the sign of an interpolation between the gradient and its average.
#pragma once

#include "graph/formulas/optimizer.h"

namespace dpt::formula {

template <class T>
struct Lion {
  T lr;
  T beta1, one_minus_beta1, beta2, one_minus_beta2;
  T keep = 1;  // 1 - lr * weight_decay

  static constexpr int kStates = 1;
  template <class U>
  constexpr Lion<U> rounded() const {
    return {.lr = U(lr),
            .beta1 = U(beta1),
            .one_minus_beta1 = U(one_minus_beta1),
            .beta2 = U(beta2),
            .one_minus_beta2 = U(one_minus_beta2),
            .keep = U(keep)};
  }
};

// State: exp_avg. A direction of nan makes the weight nan, so that the error is seen.
template <class T>
DPT_FORMULA void lion(const Lion<T>& s, T& weight, T& exp_avg, T gradient) {
  const T direction = exp_avg * s.beta1 + s.one_minus_beta1 * gradient;
  const T sign = direction > 0 ? T(1) : direction < 0 ? T(-1) : direction;
  weight = weight * s.keep - s.lr * sign;
  exp_avg = exp_avg * s.beta2 + s.one_minus_beta2 * gradient;
}

template <class T>
DPT_FORMULA void update(const Lion<T>& s, T& weight, T* const* state, T gradient) {
  lion(s, weight, *state[0], gradient);
}

}  // namespace dpt::formula
