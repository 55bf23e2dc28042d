// Hand-written kernels of what moves and pools images, for one CPU core: plain functions over
// pointers, as in simd.h, whose rules hold here too.
//
// Images lie channels_last, x[h, w, c], one sample a call: a place of an image is a row of
// channels, and all loops are over rows.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cpu/simd/isa.h"
#include "backend/cpu/simd/simd.h"

namespace dpt {

// A window's places along one extent of x: of place i of y the elements first[i], first[i] + step,
// ... below last[i], all inside x.
struct Stretches {
  const int32_t* first;
  const int32_t* last;
  int32_t step;
};

struct PoolArgs {
  size_t c, w;    // channels, width of x
  size_t oh, ow;  // extents of y
  Stretches rows, columns;
  const float* divisor;  // means: [oh, ow], of a sum
};

struct ImageKernels {
  // y[j, i] = x[i, j]
  void (*transpose)(const float* x, float* y, size_t rows, size_t columns);
  // The largest, and its place h * w + w in its plane: the first of equal ones; nan is the largest.
  void (*max_pool)(const float* x, float* y, int32_t* place, const PoolArgs& args);
  // dx, which is 0 at first, += dy at the places.
  void (*max_pool_gradient)(const float* dy, const int32_t* place, float* dx, const PoolArgs& args);
  void (*mean_pool)(const float* x, float* y, const PoolArgs& args);
  // dx, which is 0 at first, += dy / divisor all over the window.
  void (*mean_pool_gradient)(const float* dy, float* dx, const PoolArgs& args);
};

// Those of an instruction set that this CPU has.
const ImageKernels& image_simd(Isa isa);

DPT_FOR_EACH_ISA(void add_images(ImageKernels& kernels))

}  // namespace dpt
