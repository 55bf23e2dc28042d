// adadelta: Adadelta.
#pragma once

#include "graph/formulas/optimizer.h"

namespace dpt::formula {

template <class T>
struct Adadelta {
  T lr, rho, one_minus_rho, eps, weight_decay = 0;
  bool maximize = false;

  static constexpr int kStates = 2;
  template <class U>
  constexpr Adadelta<U> rounded() const {
    return {.lr = U(lr),
            .rho = U(rho),
            .one_minus_rho = U(one_minus_rho),
            .eps = U(eps),
            .weight_decay = U(weight_decay),
            .maximize = maximize};
  }
};

// States: square_avg, acc_delta.
template <class T>
DPT_FORMULA void adadelta(const Adadelta<T>& s, T& weight, T& square_avg, T& acc_delta,
                          T gradient) {
  T g = s.maximize ? -gradient : gradient;
  if (s.weight_decay != 0) g = g + s.weight_decay * weight;
  square_avg = square_avg * s.rho + s.one_minus_rho * g * g;
  const T delta = square_root(acc_delta + s.eps) / square_root(square_avg + s.eps) * g;
  acc_delta = acc_delta * s.rho + s.one_minus_rho * delta * delta;
  weight = weight - s.lr * delta;
}

template <class T>
DPT_FORMULA void update(const Adadelta<T>& s, T& weight, T* const* state, T gradient) {
  adadelta(s, weight, *state[0], *state[1], gradient);
}

}  // namespace dpt::formula
