// adam: Adam, and AdamW, which is Adam with decoupled weight decay.
#pragma once

#include "graph/formulas/optimizer.h"

namespace dpt::formula {

template <class T>
struct Adam {
  T step_size;  // lr / (1 - beta1^t)
  T one_minus_beta1;
  T beta2, one_minus_beta2;
  T inverse_correction;  // 1 / sqrt(1 - beta2^t)
  T eps;
  T weight_decay = 0;  // adam: added to the gradient; adam_w: 0
  T keep = 1;          // adam_w: 1 - lr * weight_decay; adam: 1
  bool amsgrad = false, maximize = false;

  static constexpr int kStates = 3;
  template <class U>
  constexpr Adam<U> rounded() const {
    return {.step_size = U(step_size),
            .one_minus_beta1 = U(one_minus_beta1),
            .beta2 = U(beta2),
            .one_minus_beta2 = U(one_minus_beta2),
            .inverse_correction = U(inverse_correction),
            .eps = U(eps),
            .weight_decay = U(weight_decay),
            .keep = U(keep),
            .amsgrad = amsgrad,
            .maximize = maximize};
  }
};

// Updates the moments: exp_avg, exp_avg_sq and, for amsgrad, max_exp_avg_sq. Returns v in the
// update weight -= step_size * exp_avg / (sqrt(v) / sqrt(1 - beta2^t) + eps). PyTorch divides
// sqrt(v) by sqrt(1 - beta2^t) where adam() multiplies by the inverse; results differ by one
// rounding.
template <class T>
DPT_FORMULA T adam_moments(const Adam<T>& s, T weight, T& exp_avg, T& exp_avg_sq, T* max_exp_avg_sq,
                           T gradient) {
  T g = s.maximize ? -gradient : gradient;
  if (s.weight_decay != 0) g = g + s.weight_decay * weight;
  exp_avg = exp_avg + s.one_minus_beta1 * (g - exp_avg);
  exp_avg_sq = exp_avg_sq * s.beta2 + s.one_minus_beta2 * g * g;
  if (!s.amsgrad) return exp_avg_sq;
  const T top = exp_avg_sq < *max_exp_avg_sq ? *max_exp_avg_sq : exp_avg_sq;  // keeps nan
  *max_exp_avg_sq = top;
  return top;
}

template <class T>
DPT_FORMULA void adam(const Adam<T>& s, T& weight, T& exp_avg, T& exp_avg_sq, T* max_exp_avg_sq,
                      T gradient) {
  weight = weight * s.keep;
  const T square = adam_moments(s, weight, exp_avg, exp_avg_sq, max_exp_avg_sq, gradient);
  const T denominator = square_root(square) * s.inverse_correction + s.eps;
  weight = weight - s.step_size * exp_avg / denominator;
}

template <class T>
DPT_FORMULA void update(const Adam<T>& s, T& weight, T* const* state, T gradient) {
  adam(s, weight, *state[0], *state[1], state[2], gradient);
}

}  // namespace dpt::formula
