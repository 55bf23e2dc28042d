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

  DPT_SIMD void pack_row(const float* from, const float*, size_t columns, float* to) {
    if (columns == kTileColumns) {
      store(to, load(from));
      store(to + kLanes, load(from + kLanes));
      return;
    }
    const size_t low = smaller(columns, kLanes), high = columns - low;
    store(to, load_first(from, first(low)));
    store(to + kLanes, high > 0 ? load_first(from + kLanes, first(high)) : zero());
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
