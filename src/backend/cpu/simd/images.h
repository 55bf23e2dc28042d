// Hand-written kernels of image transposition and pooling for one CPU core. The rules of simd.h
// apply.
//
// Images are in channels_last, x [h, w, c], one sample per call: a position of an image is a row of
// channels, and all inner loops run over rows.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cpu/simd/isa.h"
#include "backend/cpu/simd/simd.h"

namespace dpt {

// The windows along one dimension of x. The window of position i of y has the positions first[i],
// first[i] + step, ... < last[i], all inside x.
struct Stretches {
  const int32_t* first;
  const int32_t* last;
  int32_t step;
};

struct PoolArgs {
  size_t c, w;    // channels, width of x
  size_t oh, ow;  // height and width of y
  Stretches rows, columns;
  const float* divisor;  // for means: [oh, ow]
};

struct ImageKernels {
  // y[j, i] = x[i, j].
  void (*transpose)(const float* x, float* y, size_t rows, size_t columns);
  void (*transpose_halves)(const uint16_t* x, uint16_t* y, size_t rows, size_t columns);
  // The maximum, and its index h * width + w in x: the first of equal maxima. A nan counts as the
  // largest.
  void (*max_pool)(const float* x, float* y, int32_t* position, const PoolArgs& args);
  // The same for numbers of bf16 in 16 bits.
  void (*max_pool_bf16)(const uint16_t* x, uint16_t* y, int32_t* position, const PoolArgs& args);
  // dx[position] += dy. REQUIRES: dx is 0 at first.
  void (*max_pool_gradient)(const float* dy, const int32_t* position, float* dx,
                            const PoolArgs& args);
  // The same for dy in 16 bits; dx are the sums before they are rounded.
  void (*max_pool_gradient_bf16)(const uint16_t* dy, const int32_t* position, float* dx,
                                 const PoolArgs& args);
  // sums[c] = the sum of the rows of x [rows, c], numbers of bf16 in 16 bits; the bits of sum_rows
  // of simd.h.
  void (*sum_channels_bf16)(const uint16_t* x, float* sums, size_t rows, size_t c);
  void (*mean_pool)(const float* x, float* y, const PoolArgs& args);
  // dx += dy / divisor in the whole window. REQUIRES: dx is 0 at first.
  void (*mean_pool_gradient)(const float* dy, float* dx, const PoolArgs& args);
};

// REQUIRES: this CPU has the instruction set.
const ImageKernels& image_simd(Isa isa);

DPT_FOR_EACH_ISA(void add_images(ImageKernels& kernels))

}  // namespace dpt
