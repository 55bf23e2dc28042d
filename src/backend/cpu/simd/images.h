// Hand-written kernels of image transposition and pooling for one CPU core. The rules of simd.h
// apply.
//
// Images are in channels_last, x [d, h, w, c], one sample per call: a position of an image is a row
// of channels, and all inner loops run over rows.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cpu/simd/isa.h"
#include "backend/cpu/simd/simd.h"

namespace dpt {

// Windows of images x. The windows of row i of y take elements of the rows of x that begin at the
// positions row[begin[i]] ... row[begin[i + 1] - 1]; those of column j take the columns first[j],
// first[j] + step, ... < last[j]. All are inside x.
struct PoolArgs {
  size_t c;              // channels
  size_t rows, columns;  // of y: rows are those of all planes
  const size_t *row, *begin;
  const int32_t *first, *last;
  int32_t step;
  const float* divisor;  // for means: [rows, columns]
};

struct ImageKernels {
  // y[j, i] = x[i, j].
  void (*transpose)(const float* x, float* y, size_t rows, size_t columns);
  void (*transpose_halves)(const uint16_t* x, uint16_t* y, size_t rows, size_t columns);
  // The maximum, and its position in x: the first of equal maxima. A nan counts as the largest. Of
  // a window without elements -inf, and position 0.
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
