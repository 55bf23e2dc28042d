// adagrad: Adagrad.
#pragma once

#include "graph/formulas/optimizer.h"

namespace dpt::formula {

template <class T>
struct Adagrad {
  T clr;  // lr / (1 + (t - 1) * lr_decay)
  T eps, weight_decay = 0;
  bool maximize = false;

  static constexpr int kStates = 1;
  template <class U>
  constexpr Adagrad<U> rounded() const {
    return {.clr = U(clr), .eps = U(eps), .weight_decay = U(weight_decay), .maximize = maximize};
  }
};

// State 0: sum.
template <class T>
DPT_FORMULA void adagrad(const Adagrad<T>& s, T& weight, T& sum, T gradient) {
  T g = s.maximize ? -gradient : gradient;
  if (s.weight_decay != 0) g = g + s.weight_decay * weight;
  sum = sum + g * g;
  weight = weight - s.clr * g / (square_root(sum) + s.eps);
}

template <class T>
DPT_FORMULA void update(const Adagrad<T>& s, T& weight, T* const* state, T gradient) {
  adagrad(s, weight, *state[0], gradient);
}

}  // namespace dpt::formula
