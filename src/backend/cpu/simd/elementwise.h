// Hand-written kernels of activations, losses, dropout and norms for one CPU core. The rules of
// simd.h apply.
//
// An elementwise result only depends on its own inputs, and the results of a row only on that row,
// not on their position. So results do not depend on how a batch is divided into shards. Sums over
// samples are in the order of the samples.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cpu/simd/isa.h"
#include "backend/cpu/simd/simd.h"
#include "graph/formulas/activations.h"
#include "graph/formulas/losses.h"
#include "graph/formulas/losses/gaussian_nll.h"

namespace dpt {

// n terms of a pointwise loss.
struct PointwiseLossArgs {
  const float *x, *t;  // outputs and targets
  size_t n;
  const void* loss;  // its formula (graph/formulas/losses.h)
  // The weights of elements, and of positive targets, are repeated: that of element i is w[i %
  // size]. Arrays have kRepeats more elements, which begin again. Only for losses that have
  // weights.
  struct Weights {
    const float* w = nullptr;
    size_t size = 1;
  } weight{}, positive{};
  static constexpr size_t kRepeats = 16;
};

// gaussian_nll_loss of outputs [samples, 2, half] for targets [samples, half].
struct GaussianNllArgs {
  const float *y, *t;
  size_t targets, half;
  formula::GaussianNll loss;
};

struct DropoutArgs {
  uint32_t key[2];        // philox::layer_key
  uint64_t step, sample;  // sample: index of the first row in the global batch
  uint64_t keep_below;    // philox::keep_below
  float scale;            // factor of kept elements
};

// Outputs of n positions with c scores each. The target of a position is a class, which is in [0,
// c) or equal to `ignore`, or has a probability for each score.
struct ClassLossArgs {
  const float* x;
  const int32_t* target;       // [n]
  const float* probabilities;  // in the order of x; null: classes
  const float* weight;         // [c]; may be null
  size_t n, c;
  int64_t ignore;
  float smoothing;
  float factor;  // factor of the gradient: 1 / divisor
};

// w and b [columns] may be null. mean [rows], null: it is 0 (RMS norm).
struct RowNormArgs {
  const float *x, *w, *b;
  float *y, *mean, *rstd;
  size_t rows, columns;
  float eps;
};
struct RowNormGradient {
  const float *dy, *x, *mean, *rstd, *w;
  size_t rows, columns;
};

// Softmax and its losses, for n positions of c classes.
struct SoftmaxKernels {
  void (*softmax)(const float* x, float* y, size_t n, size_t c);
  void (*softmax_gradient)(const float* y, const float* dy, float* dx, size_t n, size_t c);
  void (*log_softmax)(const float* x, float* y, size_t n, size_t c);
  void (*log_softmax_gradient)(const float* y, const float* dy, float* dx, size_t n, size_t c);
  double (*cross_entropy)(const ClassLossArgs& args);  // returns the sum of the terms
  void (*cross_entropy_gradient)(const ClassLossArgs& args, float* dx);
};

inline constexpr int kActivations = formula::Activations::kSize;
inline constexpr int kPointwiseLosses = formula::PointwiseLosses::kSize;

// T: float, or uint16_t for numbers of bf16 in 16 bits, to which results are rounded.
template <class T>
struct ActivationsOf {
  // y[i] = f(x[i]), for each formula of the table of activations (graph/formulas/activations.h).
  // s[2]: its parameters, rounded to float.
  void (*activation[kActivations])(const T* x, T* y, size_t n, const float* s);
  // dx[i] = dy[i] * f'(x[i]). at[i] is x[i], or y[i] if the gradient is computed from the result.
  void (*activation_gradient[kActivations])(const T* at, const T* dy, T* dx, size_t n,
                                            const float* s);
};

struct ElementwiseKernels : ActivationsOf<float> {
  ActivationsOf<uint16_t> bf16;

  // The sum of the terms, for each formula of the table of pointwise losses.
  double (*loss[kPointwiseLosses])(const PointwiseLossArgs& args);
  // dx[i] = factor * slope of the term.
  void (*loss_gradient[kPointwiseLosses])(const PointwiseLossArgs& args, float* dx, float factor);
  double (*gaussian_nll)(const GaussianNllArgs& args);
  void (*gaussian_nll_gradient)(const GaussianNllArgs& args, float* dy, float factor);

  // y[i] = x[i] > 0 ? x[i] : w[i] * x[i]; dx[i] = x[i] > 0 ? dy[i] : w[i] * dy[i]. step: distance
  // of the elements of w: 1, or 0 for a single slope.
  void (*prelu)(const float* x, const float* w, size_t step, float* y, size_t n);
  void (*prelu_gradient)(const float* dy, const float* x, const float* w, size_t step, float* dx,
                         size_t n);
  // sums[c] += the sum of dy * x, where x is not above 0, over the rows of x [rows, c].
  void (*prelu_weight_gradient)(const float* dy, const float* x, double* sums, size_t rows,
                                size_t c);
  void (*add)(const float* a, const float* b, float* y, size_t n);       // y may be a or b
  void (*multiply)(const float* a, const float* b, float* y, size_t n);  // y may be a or b
  // y[i] = x[i] * (mask[i] * scale).
  void (*masked)(const float* x, const float* mask, float* y, size_t n, float scale);
  void (*masked_u8)(const float* x, const uint8_t* mask, float* y, size_t n, float scale);
  void (*dropout)(const float* x, float* y, size_t rows, size_t width, const DropoutArgs& args);
  // Of whole channels, x [rows, channels, together].
  void (*dropout_channels)(const float* x, float* y, size_t rows, size_t channels, size_t together,
                           const DropoutArgs& args);

  SoftmaxKernels rows;     // of outputs [n, c]
  SoftmaxKernels columns;  // of outputs [c, n]

  // Norms of the columns of x [rows, columns]; graph/operators/norms/row_norm.cpp.
  void (*row_norm)(const RowNormArgs& args);
  void (*row_norm_input_gradient)(const RowNormGradient& args, float* dx);
  void (*row_norm_weight_gradient)(const RowNormGradient& args, float* dw, float* db);
};

// REQUIRES: this CPU has the instruction set.
const ElementwiseKernels& elementwise_simd(Isa isa);

DPT_FOR_EACH_ISA(void add_activations(ElementwiseKernels& kernels))
DPT_FOR_EACH_ISA(void add_pointwise_losses(ElementwiseKernels& kernels))
DPT_FOR_EACH_ISA(void add_dropout(ElementwiseKernels& kernels))
DPT_FOR_EACH_ISA(void add_softmax(ElementwiseKernels& kernels))
DPT_FOR_EACH_ISA(void add_softmax_columns(ElementwiseKernels& kernels))
DPT_FOR_EACH_ISA(void add_row_norm(ElementwiseKernels& kernels))

}  // namespace dpt
