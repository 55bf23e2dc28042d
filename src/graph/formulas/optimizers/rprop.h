// rprop: resilient backpropagation.
#pragma once

#include "graph/formulas/optimizer.h"

namespace dpt::formula {

template <class T>
struct Rprop {
  T lr;                 // size of the first step
  T etaminus, etaplus;  // factors of the step size
  T step_size_min, step_size_max;
  bool maximize = false;
  bool first_step = false;  // there are no step sizes yet: they become lr

  static constexpr int kStates = 2;
  template <class U>
  constexpr Rprop<U> rounded() const {
    return {.lr = U(lr),
            .etaminus = U(etaminus),
            .etaplus = U(etaplus),
            .step_size_min = U(step_size_min),
            .step_size_max = U(step_size_max),
            .maximize = maximize,
            .first_step = first_step};
  }
};

// 1, -1, or 0 for zeros and nan.
template <class T>
DPT_FORMULA T sign_of(T x) {
  return T(x > 0 ? 1 : 0) - T(x < 0 ? 1 : 0);
}

// States: prev, the previous gradient, and step_size, of each weight. Where the gradient's sign has
// changed, the weight keeps its value for one step, and the gradient counts as 0 in the next one.
template <class T>
DPT_FORMULA void rprop(const Rprop<T>& s, T& weight, T& prev, T& step_size, T gradient) {
  T g = s.maximize ? -gradient : gradient;
  const T before = s.first_step ? s.lr : step_size;
  const T sign = sign_of(g * prev);
  const T size = before * (sign > 0 ? s.etaplus : sign < 0 ? s.etaminus : T(1));
  const T low = size < s.step_size_min ? s.step_size_min : size;  // keeps nan
  step_size = low > s.step_size_max ? s.step_size_max : low;
  if (sign < 0) g = 0;
  weight = weight - sign_of(g) * step_size;
  prev = g;
}

template <class T>
DPT_FORMULA void update(const Rprop<T>& s, T& weight, T* const* state, T gradient) {
  rprop(s, weight, *state[0], *state[1], gradient);
}

}  // namespace dpt::formula
