// muon: the part of its update that treats each element alone. backend/cpu/matrix_update.h does the
// rest.
#pragma once

#include "graph/formulas/average.h"
#include "graph/formulas/optimizer.h"

namespace dpt::formula {

template <class T>
struct Muon {
  T momentum, one_minus_momentum;
  bool nesterov = true;
  // Coefficients of the steps that make a matrix orthogonal: X = a X + (b X X^T + c (X X^T)^2) X.
  T a, b, c;
  T eps;
  int steps = 5;
  T lr;
  T keep = 1;              // 1 - lr * weight_decay
  bool match_rms = false;  // see step_size() there

  static constexpr int kStates = 2;
  template <class U>
  constexpr Muon<U> rounded() const {
    return {.momentum = U(momentum),
            .one_minus_momentum = U(one_minus_momentum),
            .nesterov = nesterov,
            .a = U(a),
            .b = U(b),
            .c = U(c),
            .eps = U(eps),
            .steps = steps,
            .lr = U(lr),
            .keep = U(keep),
            .match_rms = match_rms};
  }
};

// Updates the average of the gradient, exp_avg, and computes the direction that is to become
// orthogonal. The weight does not change.
template <class T>
DPT_FORMULA void muon(const Muon<T>& s, T& exp_avg, T& direction, T gradient) {
  exp_avg = lerp(exp_avg, gradient, s.one_minus_momentum);
  direction = s.nesterov ? lerp(gradient, exp_avg, s.momentum) : exp_avg;
}

template <class T>
DPT_FORMULA void update(const Muon<T>& s, T&, T* const* state, T gradient) {
  muon(s, *state[0], *state[1], gradient);
}

}  // namespace dpt::formula
