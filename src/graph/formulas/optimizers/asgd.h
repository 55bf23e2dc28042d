// asgd: ASGD.
#pragma once

#include "graph/formulas/optimizer.h"

namespace dpt::formula {

template <class T>
struct Asgd {
  T eta;   // the step size
  T keep;  // 1 - lambd * eta
  T mu;    // the rate of the average; 1: it becomes the weight
  T weight_decay = 0;
  bool maximize = false;

  static constexpr int kStates = 1;
  template <class U>
  constexpr Asgd<U> rounded() const {
    return {.eta = U(eta),
            .keep = U(keep),
            .mu = U(mu),
            .weight_decay = U(weight_decay),
            .maximize = maximize};
  }
};

// State 0: ax, the average of the weight.
template <class T>
DPT_FORMULA void asgd(const Asgd<T>& s, T& weight, T& ax, T gradient) {
  T g = s.maximize ? -gradient : gradient;
  if (s.weight_decay != 0) g = g + s.weight_decay * weight;
  weight = weight * s.keep;
  weight = weight - s.eta * g;
  ax = s.mu != 1 ? ax + (weight - ax) * s.mu : weight;
}

template <class T>
DPT_FORMULA void update(const Asgd<T>& s, T& weight, T* const* state, T gradient) {
  asgd(s, weight, *state[0], gradient);
}

}  // namespace dpt::formula
