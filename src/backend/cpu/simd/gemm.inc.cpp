// Large products of factors in single precision.
#include "backend/cpu/simd/gemm_loops.h"

namespace dpt::DPT_ISA {
namespace {

// One factor in each word.
struct Floats {
  static constexpr size_t kPerWord = 1;
  static constexpr bool kInPlace = true;

  DPT_SIMD Vector multiply(Vector a, Vector b, Vector sum) { return fma(a, b, sum); }

  DPT_SIMD void copy_row(const float* from, float* to, size_t n) {
    size_t i = 0;
    for (; i + kLanes <= n; i += kLanes) store(to + i, load(from + i));
    if (i < n) {
      const Mask last = first(n - i);
      store_first(to + i, last, load_first(from + i, last));
    }
  }

  DPT_SIMD void copy_columns(const float* from, const float*, float* to, size_t n) {
    copy_row(from, to, n);
  }

  // panel[k, 0 ... 2 vectors) = b[row k, 0 ... columns), followed by zeros. rows: null: row k is k.
  static void pack(const float* b, size_t stride, const uint32_t* rows, size_t depth,
                   size_t columns, float* panel) {
    const size_t high_columns = columns > kLanes ? columns - kLanes : 0;
    const Mask low = first(smaller(columns, kLanes)), high = first(high_columns);
    for (size_t k = 0; k < depth; ++k, panel += kTileColumns) {
      const float* const from = b + row_at(rows, k) * stride;
      fetch_ahead(from, stride);
      store(panel, load_first(from, low));
      store(panel + kLanes, high_columns > 0 ? load_first(from + kLanes, high) : zero());
    }
  }

  // panel[k, n] = b[n, k].
  static void pack_transposed(const float* b, size_t stride, size_t depth, size_t columns,
                              float* panel) {
    for (size_t n = 0; n < kTileColumns; n += kLanes) {
      const size_t given = columns > n ? smaller(columns - n, kLanes) : 0;
      size_t k = 0;
      if (given == kLanes) {
        const float* rows[kLanes];
        for (size_t i = 0; i < kLanes; ++i) rows[i] = b + (n + i) * stride;
        for (; k + kLanes <= depth; k += kLanes)
          transpose(rows, k, panel + k * kTileColumns + n, kTileColumns);
      }
      for (; k < depth; ++k)
        for (size_t i = 0; i < kLanes; ++i)
          panel[k * kTileColumns + n + i] = i < given ? b[(n + i) * stride + k] : 0;
    }
  }
};

}  // namespace

void add_gemm(GemmKernels& kernels) {
  kernels.row_product = row_product<Floats>;
  kernels.row_sum = row_sum<Floats>;
}

}  // namespace dpt::DPT_ISA
