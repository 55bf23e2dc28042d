// Hand-written kernels of attention (graph/operators/products/attention.cpp) for one head of one
// sample and one CPU core: plain functions over pointers, as in simd.h, whose rules hold here too.
//
// Scores exist for some rows at a time only, so memory grows with the places, not with their
// square; backward computes them again. A causal head leaves out the blocks that are not seen. Sums
// are taken in blocks that `places`, `columns` and `causal` decide.
#pragma once

#include <cstddef>

#include "backend/cpu/simd/isa.h"
#include "backend/cpu/simd/simd.h"

namespace dpt {

// The rows of q, k and v lie `qkv_row` elements apart, those of y and dy `y_row`, each `columns`
// long.
struct AttentionHead {
  size_t places, columns, qkv_row, y_row;
  bool causal;  // a place sees itself and those before it
  const float *q, *k, *v;
};

struct AttentionGradient {
  const float *dy, *y;
  const float* logsumexp;  // [places]
  float *dq, *dk, *dv;
};

struct AttentionKernels {
  // workspace: attention_workspace floats, at a cache line.
  void (*forward)(const AttentionHead& head, float* y, float* logsumexp, float* workspace);
  void (*backward)(const AttentionHead& head, const AttentionGradient& gradient, float* workspace);
};

// Enough for both, in floats.
constexpr size_t attention_workspace(size_t places, size_t columns) {
  constexpr size_t kMostRows = 64, kPanel = 32, kMostBlocks = 32 * 1024;
  return (places + kPanel) * (5 * columns + kMostRows) + kMostRows * columns + kMostBlocks;
}

// Those of an instruction set that this CPU has.
const AttentionKernels& attention_simd(Isa isa);

DPT_FOR_EACH_ISA(void add_attention(AttentionKernels& kernels))

}  // namespace dpt
