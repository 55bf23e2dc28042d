// adamax: Adamax.
#pragma once

#include "graph/formulas/optimizer.h"

namespace dpt::formula {

template <class T>
struct Adamax {
  T clr;  // lr / (1 - beta1^t)
  T one_minus_beta1, beta2, eps, weight_decay = 0;
  bool maximize = false;

  static constexpr int kStates = 2;
  template <class U>
  constexpr Adamax<U> rounded() const {
    return {.clr = U(clr),
            .one_minus_beta1 = U(one_minus_beta1),
            .beta2 = U(beta2),
            .eps = U(eps),
            .weight_decay = U(weight_decay),
            .maximize = maximize};
  }
};

// States: exp_avg, exp_inf.
template <class T>
DPT_FORMULA void adamax(const Adamax<T>& s, T& weight, T& exp_avg, T& exp_inf, T gradient) {
  T g = s.maximize ? -gradient : gradient;
  if (s.weight_decay != 0) g = g + s.weight_decay * weight;
  exp_avg = exp_avg + s.one_minus_beta1 * (g - exp_avg);
  const T decayed = exp_inf * s.beta2, size = (g < 0 ? -g : g) + s.eps;
  exp_inf = decayed >= size ? decayed : size + T(0) * decayed;  // nan if one of them is nan
  weight = weight - s.clr * exp_avg / exp_inf;
}

template <class T>
DPT_FORMULA void update(const Adamax<T>& s, T& weight, T* const* state, T gradient) {
  adamax(s, weight, *state[0], *state[1], gradient);
}

}  // namespace dpt::formula
