// Hand-written kernels of batch normalisation, for one CPU core: plain functions over pointers, as
// in simd.h, whose rules hold here too.
//
// x, y and their gradients are rows of channels, [rows, c]: [N, C], and images channels_last. What
// there is for each channel is in double, and holds kChannelBlock numbers or a multiple of it; what
// lies behind the last channel is read and written, and means nothing. Results are rounded once;
// to: to numbers of that half, and so is what would be stored between the operators that a pass
// stands for.
#pragma once

#include <cstddef>

#include "backend/cpu/simd/halves.h"
#include "backend/cpu/simd/isa.h"
#include "backend/cpu/simd/simd.h"

namespace dpt {

constexpr size_t kChannelBlock = 16;

struct BatchNormKernels {
  // sum[c] += x, squares[c] += x^2: one chain down the rows, whose bits are those of a plain loop.
  void (*sums)(const float* x, double* sum, double* squares, size_t rows, size_t c);
  // y = x * scale[c] + shift[c]; relu of it; relu of it + r
  void (*scale)(const float* x, const double* scale, const double* shift, float* y, size_t rows,
                size_t c, RoundTo to);
  void (*scale_relu)(const float* x, const double* scale, const double* shift, float* y,
                     size_t rows, size_t c, RoundTo to);
  void (*scale_add_relu)(const float* x, const float* r, const double* scale, const double* shift,
                         float* y, size_t rows, size_t c, RoundTo to);

  // sum[c] += dy, along[c] += dy * (x - mean[c]), down the rows
  void (*gradient_sums)(const float* dy, const float* x, const double* mean, double* sum,
                        double* along, size_t rows, size_t c);
  // The same of dy where x * scale[c] + shift[c] is above 0, else of 0
  void (*relu_gradient_sums)(const float* dy, const float* x, const double* mean,
                             const double* scale, const double* shift, double* sum, double* along,
                             size_t rows, size_t c);
  // The same of dr = dy + dy2 where y is above 0, else 0; dy2 may be null
  void (*add_relu_gradient)(const float* y, const float* x, const float* dy, const float* dy2,
                            const double* mean, float* dr, double* sum, double* along, size_t rows,
                            size_t c, RoundTo to);

  // dx = dy * line.scale[c] + x * line.slope[c] + line.shift[c]
  struct Line {
    const double *scale, *slope, *shift;
  };
  void (*input_gradient)(const float* dy, const float* x, const Line& line, float* dx, size_t rows,
                         size_t c, RoundTo to);
  // The same of dy where x * scale[c] + shift[c] is above 0, else of 0
  void (*relu_input_gradient)(const float* dy, const float* x, const Line& line,
                              const double* scale, const double* shift, float* dx, size_t rows,
                              size_t c, RoundTo to);
};

// Those of an instruction set that this CPU has.
const BatchNormKernels& batch_norm_simd(Isa isa);

DPT_FOR_EACH_ISA(void add_batch_norm(BatchNormKernels& kernels))

}  // namespace dpt
