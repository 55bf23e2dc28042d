// r_adam: RAdam.
#pragma once

#include "graph/formulas/optimizer.h"

namespace dpt::formula {

template <class T>
struct RAdam {
  T lr;
  T one_minus_beta1;
  T beta2, one_minus_beta2;
  T correction1;          // 1 - beta1^t
  T root_of_correction2;  // sqrt(1 - beta2^t)
  T rectification;        // r_t
  T eps;
  T weight_decay = 0;      // added to the gradient; 0 if the decay is decoupled
  T keep = 1;              // 1 - lr * weight_decay if the decay is decoupled
  bool rectified = false;  // false in the first steps, which do not divide by the root of squares
  bool maximize = false;

  static constexpr int kStates = 2;
  template <class U>
  constexpr RAdam<U> rounded() const {
    return {.lr = U(lr),
            .one_minus_beta1 = U(one_minus_beta1),
            .beta2 = U(beta2),
            .one_minus_beta2 = U(one_minus_beta2),
            .correction1 = U(correction1),
            .root_of_correction2 = U(root_of_correction2),
            .rectification = U(rectification),
            .eps = U(eps),
            .weight_decay = U(weight_decay),
            .keep = U(keep),
            .rectified = rectified,
            .maximize = maximize};
  }
};

// States: exp_avg, exp_avg_sq.
template <class T>
DPT_FORMULA void r_adam(const RAdam<T>& s, T& weight, T& exp_avg, T& exp_avg_sq, T gradient) {
  T g = s.maximize ? -gradient : gradient;
  weight = weight * s.keep;
  if (s.weight_decay != 0) g = g + s.weight_decay * weight;
  exp_avg = exp_avg + s.one_minus_beta1 * (g - exp_avg);
  exp_avg_sq = exp_avg_sq * s.beta2 + s.one_minus_beta2 * g * g;
  T step = exp_avg / s.correction1 * s.lr;
  if (s.rectified)
    step = step * (s.root_of_correction2 / (square_root(exp_avg_sq) + s.eps)) * s.rectification;
  weight = weight - step;
}

template <class T>
DPT_FORMULA void update(const RAdam<T>& s, T& weight, T* const* state, T gradient) {
  r_adam(s, weight, *state[0], *state[1], gradient);
}

}  // namespace dpt::formula
