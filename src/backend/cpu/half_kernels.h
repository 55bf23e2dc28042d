// Halves (bf16, f16) on this CPU, in addition to the kernels of kernels.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/tensor.h"

namespace dpt {

// True if this CPU has instructions for products of this half; otherwise they are emulated.
bool computes_in(DType half);

// Rounds x[0, n) to the nearest numbers of the half, in place.
void round_weights(DType half, float* x, size_t n);
// y[0, n) = x[0, n) rounded to the nearest numbers of the half; y may be x. rounding(f32) is null.
using Rounding = void (*)(const float* x, float* y, size_t n);
Rounding rounding(DType half);

// Convert between f32 and 16-bit storage, n elements.
void to_halves(DType half, const float* x, uint16_t* y, size_t n);
void from_halves(DType half, const uint16_t* x, float* y, size_t n);

}  // namespace dpt
