// Factors in bf16, two in each word (bf16_words.h), for gemm_loops.h. Only for .inc.cpp files, see
// isa.h. Sums have the bits of Floats.
#pragma once

#include "backend/cpu/simd/bf16_words.h"
#include "backend/cpu/simd/gemm_loops.h"

namespace dpt::DPT_ISA {

template <class Dot>
struct Bf16Pairs {
  static constexpr size_t kPerWord = 2;
  static constexpr bool kInPlace = false;

  DPT_SIMD Vector multiply(Vector a, Vector b, Vector sum) { return Dot::multiply(a, b, sum); }

  DPT_SIMD void copy_row(const float* from, float* to, size_t n) {
    constexpr size_t kBoth = 2 * kLanes;
    size_t i = 0;
    for (; i + kBoth <= n; i += kBoth)
      store(to + i / 2, joined_neighbors(load(from + i), load(from + i + kLanes)));
    if (i == n) return;
    const size_t left = n - i, low = smaller(left, kLanes);
    const Vector second = left > low ? load_first(from + i + kLanes, first(left - low)) : zero();
    store_first(to + i / 2, first((left + 1) / 2),
                joined_neighbors(load_first(from + i, first(low)), second));
  }

  DPT_SIMD void copy_columns(const float* from, const float* next, float* to, size_t n) {
    for (size_t i = 0; i < n; i += kLanes) {
      const Mask mask = first(smaller(n - i, kLanes));
      store_first(to + i, mask,
                  joined(load_first(from + i, mask),
                         next != nullptr ? load_first(next + i, mask) : zero()));
    }
  }

  DPT_SIMD void pack_row(const float* from, const float* next, size_t columns, float* to) {
    if (columns == kTileColumns && next != nullptr) {
      store(to, joined(load(from), load(next)));
      store(to + kLanes, joined(load(from + kLanes), load(next + kLanes)));
      return;
    }
    const size_t low = smaller(columns, kLanes), high = columns - low;
    const auto join_first = [&](size_t at, size_t n) {
      const Mask mask = first(n);
      return joined(load_first(from + at, mask),
                    next != nullptr ? load_first(next + at, mask) : no_factor());
    };
    store(to, join_first(0, low));
    store(to + kLanes, high > 0 ? join_first(kLanes, high) : zero());
  }

  // panel[k / 2, n] = b[n, k] and b[n, k + 1]. Missing columns repeat the last one.
  static void pack_transposed(const float* b, size_t stride, size_t depth, size_t columns,
                              float* panel) {
    constexpr size_t kBoth = 2 * kLanes;
    float words[kLanes][kLanes];
    const float* lines[kLanes];
    for (size_t i = 0; i < kLanes; ++i) lines[i] = words[i];
    for (size_t n = 0; n < kTileColumns; n += kLanes) {
      const float* rows[kLanes];
      for (size_t i = 0; i < kLanes; ++i) rows[i] = b + smaller(n + i, columns - 1) * stride;
      size_t k = 0;
      for (; k + kBoth <= depth; k += kBoth) {
        for (size_t i = 0; i < kLanes; ++i)
          store(words[i], joined_neighbors(load(rows[i] + k), load(rows[i] + k + kLanes)));
        transpose(lines, 0, panel + k / 2 * kTileColumns + n, kTileColumns);
      }
      for (; k < depth; k += 2) {
        float* const to = panel + k / 2 * kTileColumns + n;
        for (size_t i = 0; i < kLanes; ++i) {
          uint32_t now, next = 0x80000000U;
          __builtin_memcpy(&now, rows[i] + k, sizeof now);
          if (k + 1 < depth) __builtin_memcpy(&next, rows[i] + k + 1, sizeof next);
          now = (now & 0xffff0000U) | next >> 16;
          __builtin_memcpy(to + i, &now, sizeof now);
        }
      }
    }
  }
};

}  // namespace dpt::DPT_ISA
