// The gated linear unit (Dauphin et al., 2017): y = a * sigmoid(b), and the gradients da and db.
#pragma once

#include "graph/formulas/activation.h"

namespace dpt::formula {

template <class T>
DPT_FORMULA T glu(T a, T b) {
  return a * sigmoid(b);
}
template <class T>
DPT_FORMULA T glu_gradient_a(T b, T dy) {
  return dy * sigmoid(b);
}
template <class T>
DPT_FORMULA T glu_gradient_b(T a, T b, T dy) {
  const T s = sigmoid(b);
  return dy * a * (s * (T(1) - s));
}

}  // namespace dpt::formula
