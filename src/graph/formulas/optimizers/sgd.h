// sgd: stochastic gradient descent with momentum.
#pragma once

#include "graph/formulas/optimizer.h"

namespace dpt::formula {

template <class T>
struct Sgd {
  T lr, momentum = 0, one_minus_dampening = 1, weight_decay = 0;
  bool nesterov = false, maximize = false;
  bool first_step = false;  // there is no momentum buffer yet: it becomes the gradient

  static constexpr int kStates = 1;
  template <class U>
  constexpr Sgd<U> rounded() const {
    return {.lr = U(lr),
            .momentum = U(momentum),
            .one_minus_dampening = U(one_minus_dampening),
            .weight_decay = U(weight_decay),
            .nesterov = nesterov,
            .maximize = maximize,
            .first_step = first_step};
  }
};

// State 0: momentum_buffer, unused if momentum is 0.
template <class T>
DPT_FORMULA void sgd(const Sgd<T>& s, T& weight, T* momentum_buffer, T gradient) {
  T g = s.maximize ? -gradient : gradient;
  if (s.weight_decay != 0) g = g + s.weight_decay * weight;
  if (s.momentum != 0) {
    const T b = s.first_step ? g : s.momentum * *momentum_buffer + s.one_minus_dampening * g;
    *momentum_buffer = b;
    g = s.nesterov ? g + s.momentum * b : b;
  }
  weight = weight - s.lr * g;
}

template <class T>
DPT_FORMULA void update(const Sgd<T>& s, T& weight, T* const* state, T gradient) {
  sgd(s, weight, state[0], gradient);
}

}  // namespace dpt::formula
