// Averages of weights, as torch.optim.swa_utils.get_ema_multi_avg_fn computes them.
#pragma once

#include "graph/formulas/formulas.h"

namespace dpt::formula {

// torch.lerp: from + rate * (to - from). With rate 1 the result is exactly `to`.
template <class T>
DPT_FORMULA T lerp(T from, T to, T rate) {
  const T way = to - from;
  return rate < T(0.5) ? from + rate * way : to - way * (T(1) - rate);
}

// The rate of the average with that decay after `update` (from 1): the first one copies the
// weights. PyTorch rounds 1 - decay, a Python number, to the type of the weights.
template <class T>
DPT_FORMULA T average_rate(double decay, bool first_update) {
  return first_update ? T(1) : static_cast<T>(1 - decay);
}

}  // namespace dpt::formula
