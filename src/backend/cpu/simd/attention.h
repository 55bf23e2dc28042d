// Hand-written kernels of attention (graph/operators/products/attention.cpp) for one head of one
// sample on one CPU core. The rules of simd.h apply.
//
// Only some rows of the scores exist at a time, so memory grows linearly with the number of
// positions; the backward pass computes the scores again. Causal heads skip blocks of which nothing
// is seen. The order of sums only depends on `positions`, `columns` and `causal`.
#pragma once

#include <cstddef>

#include "backend/cpu/simd/isa.h"
#include "backend/cpu/simd/simd.h"

namespace dpt {

// One head. positions: positions of the sequence. Rows of q, k and v have `columns` elements and
// are `qkv_row` elements apart, rows of y and dy `y_row`.
struct AttentionHead {
  size_t positions, columns, qkv_row, y_row;
  bool causal;  // a position only attends to itself and to earlier ones
  const float *q, *k, *v;
};

struct AttentionGradient {
  const float *dy, *y;
  const float* logsumexp;  // [positions]
  float *dq, *dk, *dv;
};

struct AttentionKernels {
  // workspace: attention_workspace() floats, aligned to a cache line.
  void (*forward)(const AttentionHead& head, float* y, float* logsumexp, float* workspace);
  void (*backward)(const AttentionHead& head, const AttentionGradient& gradient, float* workspace);
};

// bf16: q, k, v, y and dy are numbers of bf16, and the factors of the other products, the weights
// (before they are divided by their sum) and the gradients of scores, are rounded to bf16. The
// results are not rounded. On threads that flush subnormal numbers, `instruction` and `emulated`
// have the bits of `bf16`.
struct AttentionVariants {
  AttentionKernels floats;
  AttentionKernels bf16;         // by fma
  AttentionKernels instruction;  // by VDPBF16PS. REQUIRES: AVX512-BF16; null below AVX-512
  AttentionKernels emulated;     // the same with two fma in its place; for tests
};

// Floats of workspace, enough for forward and backward.
constexpr size_t attention_workspace(size_t positions, size_t columns) {
  constexpr size_t kMostRows = 64, kPanel = 32, kMostBlocks = 32 * 1024;
  return (positions + kPanel) * (5 * columns + kMostRows) + kMostRows * columns + kMostBlocks;
}

// REQUIRES: this CPU has the instruction set.
const AttentionVariants& attention_simd(Isa isa);

DPT_FOR_EACH_ISA(void add_attention(AttentionVariants& kernels))
DPT_FOR_EACH_ISA(void add_attention_gradient(AttentionVariants& kernels))

}  // namespace dpt
