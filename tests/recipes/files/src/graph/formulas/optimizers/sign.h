// sign: a step of lr against the sign of an average of gradients.
#pragma once

#include "graph/formulas/optimizer.h"

namespace dpt::formula {

template <class T>
struct Sign {
  T lr, beta, one_minus_beta;

  static constexpr int kStates = 1;
  template <class U>
  constexpr Sign<U> rounded() const {
    return {.lr = U(lr), .beta = U(beta), .one_minus_beta = U(one_minus_beta)};
  }
};

template <class T>
DPT_FORMULA void update(const Sign<T>& s, T& weight, T* const* state, T gradient) {
  const T average = s.beta * *state[0] + s.one_minus_beta * gradient;
  *state[0] = average;
  weight = weight - (average > 0 ? s.lr : average < 0 ? -s.lr : T(0));
}

}  // namespace dpt::formula
