// Products whose left operand has many zeros, such as images and gradients behind relu. They
// compute two rows of C at a time and only visit the k where at least one of the two elements of A
// is not 0. Only for .inc.cpp files.
//
// A skipped term would add 0, so the bits are those of the full chain (except that a skipped term
// of a non-finite B would have made nan). Two rows are used because a single row would need as many
// loads of B as fma, and adjacent rows have most of their zeros in common.
#pragma once

#include "backend/cpu/simd/like_rows.h"
#include "backend/cpu/simd/tile.h"
#include "base/units.h"

namespace dpt::DPT_ISA {

constexpr int kPairVectors = kLanes == 16 ? 13 : 6;  // two rows of them fill the registers
// Rows of B that all pairs of a column use should stay in L1, and a mask has 64 bits.
constexpr size_t kPairDepth = kLanes == 16 ? 52 : 64;
constexpr size_t kPairColumns = kPairVectors * kLanes;

// masks[r]: a bit for each k < depth where A(r, k) is not 0, for kLanes rows or for the first
// `rows`. nonzero_in_columns: for a transposed A; nonzero_in_rows: otherwise.
DPT_SIMD void nonzero_in_columns(const Product& p, size_t begin, size_t rows, uint64_t* masks) {
  const float* const a = p.a + begin;
  const Mask lanes = first(rows);
#if defined(__AVX512F__)
  __m512i low = _mm512_setzero_si512(), high = low;
  for (size_t k = 0; k < p.depth; ++k) {
    const uint64_t found = nonzero(load_first(a + k * p.step, lanes));
    __builtin_prefetch(a + k * p.step + 2 * kLanes);
    const __m512i bit = _mm512_set1_epi64(static_cast<long long>(uint64_t{1} << k));
    low = _mm512_mask_or_epi64(low, static_cast<__mmask8>(found), low, bit);
    high = _mm512_mask_or_epi64(high, static_cast<__mmask8>(found >> 8), high, bit);
  }
  _mm512_storeu_si512(masks, low);
  _mm512_storeu_si512(masks + 8, high);
#elif defined(__AVX2__)
  // 32 bits of the mask
  const auto half = [&](size_t k, size_t end) __attribute__((always_inline)) {
    __m256i found = _mm256_setzero_si256(), bit = _mm256_set1_epi32(1);
    for (; k < end; ++k, bit = _mm256_add_epi32(bit, bit)) {
      const __m256 a_k = load_first(a + k * p.step, lanes);
      __builtin_prefetch(a + k * p.step + 2 * kLanes);
      const __m256i is = _mm256_castps_si256(_mm256_cmp_ps(a_k, zero(), _CMP_NEQ_UQ));
      found = _mm256_or_si256(found, _mm256_and_si256(is, bit));
    }
    return found;
  };
  const size_t middle = p.depth < 32 ? p.depth : 32;
  const __m256i low = half(0, middle), high = half(middle, p.depth);
  const auto join = [&](__m256i l, __m256i h, uint64_t * to) __attribute__((always_inline)) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to),
                        _mm256_or_si256(l, _mm256_slli_epi64(h, 32)));
  };
  join(_mm256_cvtepu32_epi64(_mm256_castsi256_si128(low)),
       _mm256_cvtepu32_epi64(_mm256_castsi256_si128(high)), masks);
  join(_mm256_cvtepu32_epi64(_mm256_extracti128_si256(low, 1)),
       _mm256_cvtepu32_epi64(_mm256_extracti128_si256(high, 1)), masks + 4);
#else
  for (size_t r = 0; r < kLanes; ++r) masks[r] = 0;
  for (size_t k = 0; k < p.depth; ++k) {
    const uint64_t found = nonzero(load_first(a + k * p.step, lanes));
    for (size_t r = 0; r < kLanes; ++r) masks[r] |= (found >> r & 1) << k;
  }
#endif
}

DPT_SIMD void nonzero_in_rows(const Product& p, const uint8_t* order, size_t rows,
                              uint64_t* masks) {
  for (size_t r = 0; r < rows; ++r) {
    const float* a = p.a + order[r] * p.row;
    uint64_t found = 0;
    size_t k = 0;
    for (; k + kLanes <= p.depth; k += kLanes) found |= nonzero(load(a + k)) << k;
    if (k < p.depth) found |= nonzero(load_first(a + k, first(p.depth - k))) << k;
    masks[r] = found;
  }
}

// Prefetches the next rows of B while the current ones are used, since another core may have
// written them. It fetches one line at a time, or loads of the current rows would wait behind
// distant lines. It may run past the last row, which is harmless.
struct RowPrefetch {
  uintptr_t next, step;

  static RowPrefetch after(const Product& b, size_t rows) {
    return {reinterpret_cast<uintptr_t>(b.b + (rows > 0 ? b.depth * b.ldb : 0)),
            rows > 0 ? kCacheLine : size_t{0}};
  }
  [[gnu::always_inline]] void fetch() {
    __builtin_prefetch(reinterpret_cast<const void*>(next), 0, 2);
    next += step;
  }
};

// The operands that all pairs of a column share. Distances are in bytes.
struct PairColumn {
  const float* b;
  size_t ldb, step;
  const float* bias;
  Mask last;
};

// Two rows of kVectors vectors, of which the last is masked. a0, a1, c0, c1: these rows of A and C.
template <int kVectors, bool kContinued>
DPT_SIMD void pair(const PairColumn& p, const float* a0, const float* a1, float* c0, float* c1,
                   uint64_t mask, RowPrefetch& prefetch) {
  const auto after = [](const float* from, size_t bytes) __attribute__((always_inline)) {
    return reinterpret_cast<const float*>(reinterpret_cast<const char*>(from) + bytes);
  };
  Vector sum[2][kVectors];
  DPT_UNROLL
  for (int v = 0; v < kVectors; ++v) {
    const auto start = [&](const float* c) __attribute__((always_inline)) {
      if (!kContinued) return own_zero();
      return v == kVectors - 1 ? load_first(c + v * kLanes, p.last) : load(c + v * kLanes);
    };
    sum[0][v] = start(c0);
    sum[1][v] = start(c1);
  }
  for (; mask != 0; mask &= mask - 1) {
    const auto k = static_cast<size_t>(__builtin_ctzll(mask));
    const float* b = after(p.b, k * p.ldb);
    const size_t along_a = k * p.step;
    prefetch.fetch();
    const Vector left0 = all(*after(a0, along_a)), left1 = all(*after(a1, along_a));
    DPT_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      const float* at = b + v * kLanes;
      Vector right = v == kVectors - 1 ? load_first(at, p.last) : load(at);
      keep(right);
      sum[0][v] = fma(left0, right, sum[0][v]);
      sum[1][v] = fma(left1, right, sum[1][v]);
    }
  }
  const auto finish = [&](float* c, const Vector* s) __attribute__((always_inline)) {
    DPT_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      const bool masked = v == kVectors - 1;
      Vector x = s[v];
      if (p.bias != nullptr)
        x = add(x, masked ? load_first(p.bias + v * kLanes, p.last) : load(p.bias + v * kLanes));
      if (masked) {
        store_first(c + v * kLanes, p.last, x);
      } else {
        store(c + v * kLanes, x);
      }
    }
  };
  finish(c0, sum[0]);
  finish(c1, sum[1]);
}

// The order of the rows of A, and their masks.
struct PairRows {
  const uint8_t* order;
  uint64_t* masks;  // a whole number of vectors
  bool found;       // the masks are known from an earlier column
};

// One column of C. REQUIRES: p.depth <= kPairDepth.
template <int kVectors, bool kContinued>
[[gnu::noinline]] static void pair_column(const Product& p, size_t rows, size_t columns,
                                          const PairRows& pairs, RowPrefetch prefetch) {
  const uint8_t* const order = pairs.order;
  const PairColumn column{.b = p.b,
                          .ldb = p.ldb * sizeof(float),
                          .step = p.step * sizeof(float),
                          .bias = p.bias,
                          .last = first(columns - (kVectors - 1) * kLanes)};
  float nowhere[kVectors * kLanes] = {};
  for (size_t r = 0; r < rows; r += kLanes) {
    const size_t height = rows - r < kLanes ? rows - r : kLanes;
    uint64_t* const masks = pairs.masks + r;
    if (!pairs.found && p.row == 1) nonzero_in_columns(p, r, height, masks);
    if (!pairs.found && p.row != 1) nonzero_in_rows(p, order + r, height, masks);
    for (size_t i = 0; i < height; i += 2) {
      const bool alone = i + 1 == height;
      const size_t row0 = order[r + i], row1 = order[r + i + !alone];
      pair<kVectors, kContinued>(column, p.a + row0 * p.row, p.a + row1 * p.row, p.c + row0 * p.ldc,
                                 alone ? nowhere : p.c + row1 * p.ldc,
                                 alone ? masks[i] : masks[i] | masks[i + 1], prefetch);
    }
  }
}

template <bool kContinued, int kVectors = kPairVectors>
DPT_SIMD void pair_column_of(const Product& p, size_t rows, size_t columns, const PairRows& pairs,
                             RowPrefetch prefetch) {
  if constexpr (kVectors > 1) {
    if (columns <= (kVectors - 1) * kLanes) {
      pair_column_of<kContinued, kVectors - 1>(p, rows, columns, pairs, prefetch);
      return;
    }
  }
  pair_column<kVectors, kContinued>(p, rows, columns, pairs, prefetch);
}

// Copies `columns` columns of B's rows to where each vector lies in one cache line. In a row that
// is not aligned, each vector lies in two lines, and loads are already the bottleneck.
DPT_SIMD void copy_to_lines(const Product& p, size_t columns, float* panel) {
  const size_t whole = columns / kLanes * kLanes;
  const Mask last = first(columns - whole);
  for (size_t k = 0; k < p.depth; ++k) {
    const float* from = p.b + k * p.ldb;
    float* to = panel + k * kPairColumns;
    for (size_t l = 0; l < whole; l += kLanes) store(to + l, load(from + l));
    if (whole < columns) store(to + whole, load_first(from + whole, last));
  }
}

DPT_SIMD bool lies_in_lines(const Product& p) {
  return (reinterpret_cast<uintptr_t>(p.b) | p.ldb * sizeof(float)) % sizeof(Vector) == 0;
}

constexpr size_t kOrderedRows = 256;

// At most kOrderedRows rows of C.
DPT_SIMD void pair_rows(const Product& all, size_t m, size_t n, bool continued) {
  // In rows of A: the copy costs as much as twelve rows and gains a tenth.
  constexpr size_t kWorthCopying = 128;
  Product p = all;
  uint8_t order[kOrderedRows];
  order_rows(p, m, n, order);
  const bool copies = m >= kWorthCopying && !lies_in_lines(p);
  alignas(64) float panel[kPairDepth * kPairColumns];
  uint64_t masks[kOrderedRows];
  for (size_t k = 0; k < all.depth; k += p.depth) {
    p.depth = all.depth - k <= kPairDepth ? all.depth - k : kPairDepth / kLanes * kLanes;
    p.a = all.a + k * all.step;
    const size_t left = all.depth - k - p.depth;
    size_t columns_left = pieces(n, kPairColumns);
    for (size_t i = 0, columns; i < n; i += columns, --columns_left) {
      // Whole vectors, about the same number in each column.
      columns = pieces(pieces(n - i, kLanes), columns_left) * kLanes;
      if (columns > n - i) columns = n - i;
      p.b = all.b + k * all.ldb + i;
      p.ldb = all.ldb;
      p.c = all.c + i;
      p.bias = all.bias != nullptr && left == 0 ? all.bias + i : nullptr;
      const RowPrefetch prefetch = RowPrefetch::after(p, i == 0 ? left : 0);
      if (copies) {
        copy_to_lines(p, columns, panel);
        p.b = panel;
        p.ldb = kPairColumns;
      }
      const PairRows pairs{.order = order, .masks = masks, .found = i > 0};
      if (k == 0 && !continued) {
        pair_column_of<false>(p, m, columns, pairs, prefetch);
      } else {
        pair_column_of<true>(p, m, columns, pairs, prefetch);
      }
    }
  }
}

// c [m, n] = a [m, k] b [k, n] (+ bias), with a and c as in `p`, which is at column 0. continued: c
// holds the chains so far.
[[maybe_unused]] static void pair_product(Product p, size_t m, size_t n, bool continued) {
  for (size_t left = m; left > 0;) {
    const size_t rows = left < kOrderedRows ? left : kOrderedRows;
    pair_rows(p, rows, n, continued);
    p.a += rows * p.row;
    p.c += rows * p.ldc;
    left -= rows;
  }
}

// True if pair_product() pays: estimates from some samples how many pairs of A are not 0.
DPT_SIMD bool has_zeros(const Product& p, size_t m, size_t n) {
  if (n < 4 * kLanes || m < 2 || p.depth == 0) return false;
  constexpr size_t kPlaces = 6;
  const size_t row_step = m / kPlaces + 1, k_step = p.depth / kPlaces + 1;
  size_t looked = 0, full = 0;
  for (size_t r = 0; r + 1 < m; r += row_step)
    for (size_t k = r % k_step; k < p.depth; k += k_step, ++looked) {
      const float* at = p.a + r * p.row + k * p.step;
      if (at[0] != 0 || at[p.row] != 0) ++full;
    }
  return full * 8 < looked * 7;
}

}  // namespace dpt::DPT_ISA
