// Halves on this CPU, beside the rows of kernels.h.
#pragma once

#include <cstddef>

#include "base/tensor.h"

namespace dpt {

// Whether products of that half are computed as such, with something to gain.
bool computes_in(DType half);

// x[i] as the nearest number of the half, i < n.
void round_weights(DType half, float* x, size_t n);

}  // namespace dpt
