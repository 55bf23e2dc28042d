// Hand-written kernels of batch normalization for one CPU core. The rules of simd.h apply.
//
// x, y and their gradients are rows of channels [rows, c]: [N, C], or images in channels_last.
// Arrays with a number for each channel are in double and padded to a multiple of kChannelBlock;
// the padding is read and written but has no meaning. Results are rounded once. to: round to this
// half; values that fused operators would have stored between them are rounded, too.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cpu/simd/halves.h"
#include "backend/cpu/simd/isa.h"
#include "backend/cpu/simd/simd.h"

namespace dpt {

constexpr size_t kChannelBlock = 16;

struct BatchNormLine {
  const double *scale, *slope, *shift;
};

// T: float, or uint16_t for numbers of bf16 in 16 bits; then `to` is RoundTo::bf16.
template <class T>
struct BatchNormOf {
  // sum[c] += x, squares[c] += x^2: one chain down the rows, with the bits of a plain loop.
  void (*sums)(const T* x, double* sum, double* squares, size_t rows, size_t c);
  // y = x * scale[c] + shift[c]; scale_relu: relu of that; scale_add_relu: relu of that + r.
  void (*scale)(const T* x, const double* scale, const double* shift, T* y, size_t rows, size_t c,
                RoundTo to);
  void (*scale_relu)(const T* x, const double* scale, const double* shift, T* y, size_t rows,
                     size_t c, RoundTo to);
  void (*scale_add_relu)(const T* x, const T* r, const double* scale, const double* shift, T* y,
                         size_t rows, size_t c, RoundTo to);

  // sum[c] += dy, along[c] += dy * (x - mean[c]), down the rows.
  void (*gradient_sums)(const T* dy, const T* x, const double* mean, double* sum, double* along,
                        size_t rows, size_t c);
  // The same for dy where x * scale[c] + shift[c] > 0, else 0.
  void (*relu_gradient_sums)(const T* dy, const T* x, const double* mean, const double* scale,
                             const double* shift, double* sum, double* along, size_t rows,
                             size_t c);
  // The same for dr = dy + dy2 where y > 0, else 0, which is also written. dy2 may be null.
  void (*add_relu_gradient)(const T* y, const T* x, const T* dy, const T* dy2, const double* mean,
                            T* dr, double* sum, double* along, size_t rows, size_t c, RoundTo to);

  // dx = dy * line.scale[c] + x * line.slope[c] + line.shift[c].
  void (*input_gradient)(const T* dy, const T* x, const BatchNormLine& line, T* dx, size_t rows,
                         size_t c, RoundTo to);
  // The same for dy where x * scale[c] + shift[c] > 0, else 0.
  void (*relu_input_gradient)(const T* dy, const T* x, const BatchNormLine& line,
                              const double* scale, const double* shift, T* dx, size_t rows,
                              size_t c, RoundTo to);
};

struct BatchNormKernels : BatchNormOf<float> {
  BatchNormOf<uint16_t> bf16;
};

// REQUIRES: this CPU has the instruction set.
const BatchNormKernels& batch_norm_simd(Isa isa);

DPT_FOR_EACH_ISA(void add_batch_norm(BatchNormKernels& kernels))

}  // namespace dpt
