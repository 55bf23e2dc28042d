// What the formulas of optimizers share: each file in optimizers/ holds the update of one element,
// as in the single-tensor functions of torch/optim/*.py on a CPU: the same operations in the same
// order.
//
// A formula is a struct template with
//   its scalars and flags
//   kStates: how many states it has at most
//   rounded<U>(): the scalars in the type U, each rounded once
// and a function update(s, weight, state, gradient): state[k] points to the element's state k, or
// is null if the optimizer has no such state. Its name in optimizers.h makes the loops of CPUs and
// GPUs.
//
// T is float, or double in tests. The caller computes step-dependent scalars in double and rounds
// them to T, as PyTorch does with Python numbers; t counts steps from 1. States start at 0
// (adagrad's at initial_accumulator_value). Flags are equal for all elements, so callers can hoist
// the branches on them out of the loop.
#pragma once

#include "graph/formulas/formulas.h"

namespace dpt::formula {

#ifdef __CUDACC__
DPT_FORMULA float square_root(float x) { return ::sqrtf(x); }
DPT_FORMULA double square_root(double x) { return ::sqrt(x); }
#else
DPT_FORMULA float square_root(float x) { return __builtin_sqrtf(x); }
DPT_FORMULA double square_root(double x) { return __builtin_sqrt(x); }
#endif

}  // namespace dpt::formula
