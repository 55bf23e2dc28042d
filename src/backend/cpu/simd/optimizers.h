// Updates by the table of optimizer formulas, apart from simd.h, which most kernels include.
#pragma once

#include "backend/cpu/simd/simd.h"
#include "graph/formulas/optimizers.h"

namespace dpt {

// Formula: one of the table, in float.
template <class Formula>
void update(const SimdKernels& kernels, const UpdateArgs& args, const Formula& s) {
  kernels.updates[formula::kOptimizerOf<Formula>](args, &s);
}

}  // namespace dpt
