// n_adam: NAdam.
#pragma once

#include "graph/formulas/optimizer.h"

namespace dpt::formula {

template <class T>
struct NAdam {
  T gradient_step;  // lr * (1 - mu_t) / (1 - mu_1 * ... * mu_t)
  T average_step;   // lr * mu_{t + 1} / (1 - mu_1 * ... * mu_{t + 1})
  T one_minus_beta1;
  T beta2, one_minus_beta2;
  T correction2;  // 1 - beta2^t
  T eps;
  T weight_decay = 0;  // added to the gradient; 0 if the decay is decoupled
  T keep = 1;          // 1 - lr * weight_decay if the decay is decoupled
  bool maximize = false;

  static constexpr int kStates = 2;
  template <class U>
  constexpr NAdam<U> rounded() const {
    return {.gradient_step = U(gradient_step),
            .average_step = U(average_step),
            .one_minus_beta1 = U(one_minus_beta1),
            .beta2 = U(beta2),
            .one_minus_beta2 = U(one_minus_beta2),
            .correction2 = U(correction2),
            .eps = U(eps),
            .weight_decay = U(weight_decay),
            .keep = U(keep),
            .maximize = maximize};
  }
};

// States: exp_avg, exp_avg_sq.
template <class T>
DPT_FORMULA void n_adam(const NAdam<T>& s, T& weight, T& exp_avg, T& exp_avg_sq, T gradient) {
  T g = s.maximize ? -gradient : gradient;
  weight = weight * s.keep;
  if (s.weight_decay != 0) g = g + s.weight_decay * weight;
  exp_avg = exp_avg + s.one_minus_beta1 * (g - exp_avg);
  exp_avg_sq = exp_avg_sq * s.beta2 + s.one_minus_beta2 * g * g;
  const T denominator = square_root(exp_avg_sq / s.correction2) + s.eps;
  weight = weight - s.gradient_step * g / denominator;
  weight = weight - s.average_step * exp_avg / denominator;
}

template <class T>
DPT_FORMULA void update(const NAdam<T>& s, T& weight, T* const* state, T gradient) {
  n_adam(s, weight, *state[0], *state[1], gradient);
}

}  // namespace dpt::formula
