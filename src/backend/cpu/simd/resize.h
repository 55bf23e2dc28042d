// Hand-written kernels that resize images for one CPU core: each result is a sum of elements of the
// input along height and width. The rules of simd.h apply; images are in channels_last, [h, w, c],
// one sample per call. The rows of a volume are those of all its images.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cpu/simd/isa.h"
#include "backend/cpu/simd/simd.h"

namespace dpt {

// Along one dimension, position i of y is the sum of the `taps` positions at[i * taps ...] of x
// with these weights. taps is 1, 2 or 4; with 1, all weights are 1.
struct ResizeAxis {
  size_t in, out, taps;
  const int32_t* at;    // [out, taps]
  const float* weight;  // [out, taps]
  bool keeps;           // y is x
};

struct ResizeArgs {
  size_t c;
  ResizeAxis rows, columns;
  float* row;  // memory for a row of x, [columns.in, c]
};

struct ResizeKernels {
  void (*forward)(const float* x, float* y, const ResizeArgs& args);
  // dx += the gradient of `forward` for dy. REQUIRES: dx is 0 on entry.
  void (*gradient)(const float* dy, float* dx, const ResizeArgs& args);
};

// REQUIRES: this CPU has the instruction set.
const ResizeKernels& resize_simd(Isa isa);

DPT_FOR_EACH_ISA(void add_resize(ResizeKernels& kernels))

}  // namespace dpt
