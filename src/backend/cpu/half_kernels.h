// Halves on this CPU, beside the rows of kernels.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/tensor.h"

namespace dpt {

// Whether this CPU has instructions for products of that half; without, it is only emulated.
bool computes_in(DType half);

// x[i] as the nearest number of the half, i < n.
void round_weights(DType half, float* x, size_t n);
// y[i] is x[i] as the nearest number of the half, i < n; y may be x. Null for f32.
using Rounding = void (*)(const float* x, float* y, size_t n);
Rounding rounding(DType half);

// Between floats and halves of 16 bits, i < n.
void to_halves(DType half, const float* x, uint16_t* y, size_t n);
void from_halves(DType half, const uint16_t* x, float* y, size_t n);

}  // namespace dpt
