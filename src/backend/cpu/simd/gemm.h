// Products of large matrices whose rows are selected by index, for one CPU core: the building
// blocks of convolutions over images in channels_last. The rules of simd.h apply.
//
// A convolution is a sum over the positions of its window, its taps. A tap pairs positions of x
// with positions of y; a position is a row of channels. So a tap is a list of pairs of rows, the
// same for the convolution and for both of its gradients.
//
// Sums are computed in blocks. Blocks along `depth` only depend on `depth`, so a row of a product
// does not depend on the number of rows. With `chain`, each sum is one chain of fma instead, with
// the bits of matmul and linear_weight_gradient in simd.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cpu/simd/halves.h"
#include "backend/cpu/simd/isa.h"
#include "backend/cpu/simd/simd.h"

namespace dpt {

struct RowPairs {
  size_t count;
  const uint32_t* first = nullptr;   // [count], or null: 0, 1, ...
  const uint32_t* second = nullptr;  // the same; none twice
};

// c[second, n] = (adds ? c[second, n] : 0) + the sum over k of a[first, k] * b[t, k, n], for all
// pairs (first, second) of all taps t. REQUIRES: `adds`, or a single tap whose `second` covers all
// rows of c.
struct RowProduct {
  const RowPairs* taps;
  size_t tap_count, depth, columns;
  const float* a;  // rows of `depth` elements
  const float* b;  // [taps, depth, columns], or [taps, columns, depth]
  bool b_transposed;
  float* c;  // rows of `columns` elements
  bool adds, chain;
  RoundTo to;                   // final rounding of c. REQUIRES: f32, or one tap with all rows of c
  const float* bias = nullptr;  // [columns] added last; may be null. REQUIRES: chain, one tap
};

// c[t, i, n] = (adds ? c[t, i, n] : 0) + the sum over the pairs (first, second) of tap t of
// a[first, i] * b[second, n].
struct RowSum {
  const RowPairs* taps;
  size_t tap_count, depth, columns;
  const float* a;  // rows of `depth` elements
  size_t a_row;    // distance of the rows of a
  const float* b;  // rows of `columns` elements
  float* c;        // [taps, depth, columns]
  bool adds, chain;
};

struct GemmKernels {
  // workspace: kGemmWorkspace floats, aligned to a cache line.
  void (*row_product)(const RowProduct& args, float* workspace);
  void (*row_sum)(const RowSum& args, float* workspace);
};

constexpr size_t kGemmWorkspace = size_t{200} * 1024;  // floats

// REQUIRES: this CPU has the instruction set.
const GemmKernels& gemm_simd(Isa isa);

DPT_FOR_EACH_ISA(void add_gemm(GemmKernels& kernels))

}  // namespace dpt
