// Products of large matrices whose rows lie anywhere, for one CPU core: what convolutions over
// images that lie channels_last are made of. Plain functions over pointers, as in simd.h, whose
// rules hold here too.
//
// A convolution is a sum over the places of its window, its taps. A tap pairs places of x with
// places of y; a place is a row of channels. So a tap is a list of pairs of rows, the same for the
// convolution and both its gradients.
//
// Sums are taken in blocks, those over the depth in blocks that the depth alone decides: a row of a
// product does not depend on how many others there are. With `chain` they are not: each is one
// chain of fma, the bits of matmul and linear_weight_gradient in simd.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cpu/simd/halves.h"
#include "backend/cpu/simd/isa.h"
#include "backend/cpu/simd/simd.h"

namespace dpt {

struct RowPairs {
  size_t count;
  const uint32_t* first;   // [count], or null: 0, 1, ...
  const uint32_t* second;  // the same; none twice
};

// c[second, n] = (adds: what it is, else 0) + the sum over k of a[first, k] b[t, k, n], for all
// pairs of all taps t. REQUIRES: adds, or there is one tap, which has all rows of c.
struct RowProduct {
  const RowPairs* taps;
  size_t tap_count, depth, columns;
  const float* a;  // rows of `depth` elements
  const float* b;  // [taps, depth, columns], or [taps, columns, depth]
  bool b_transposed;
  float* c;  // rows of `columns` elements
  bool adds, chain;
  RoundTo to;  // what c becomes at last. REQUIRES: f32, or one tap that has all rows of c
  const float* bias = nullptr;  // [columns] added to each sum at last. REQUIRES: chain, one tap
};

// c[t, i, n] = (adds: what it is, else 0) + the sum over the pairs of tap t of
// a[first, i] b[second, n].
struct RowSum {
  const RowPairs* taps;
  size_t tap_count, depth, columns;
  const float* a;  // rows of `depth` elements
  size_t a_row;    // from one row of a to the next one
  const float* b;  // rows of `columns` elements
  float* c;        // [taps, depth, columns]
  bool adds, chain;
};

struct GemmKernels {
  // workspace: gemm_workspace floats, at a cache line.
  void (*row_product)(const RowProduct& args, float* workspace);
  void (*row_sum)(const RowSum& args, float* workspace);
};

constexpr size_t kGemmWorkspace = size_t{200} * 1024;  // floats

// Those of an instruction set that this CPU has.
const GemmKernels& gemm_simd(Isa isa);

DPT_FOR_EACH_ISA(void add_gemm(GemmKernels& kernels))

}  // namespace dpt
