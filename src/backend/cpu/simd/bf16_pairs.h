// Factors in bf16, two in each word, for gemm_loops.h. Only for .inc.cpp files, see isa.h.
//
// VDPBF16PS adds two products to a sum, that of the upper halves of the words first. Each addition
// is one fma rounded to nearest even; subnormal numbers count as 0. This is Intel's definition
// (Software Developer's Manual, VDPBF16PS), and bf16_products.h checks it. So with the factor of
// the smaller k in the upper half, a sum over k is one chain of fma with the bits of Floats, on a
// thread that flushes subnormal numbers (base/flush_subnormals.h).
#pragma once

#include "backend/cpu/simd/gemm_loops.h"

namespace dpt::DPT_ISA {

DPT_SIMD Words upper(Vector v) { return (Words)v & 0xffff0000U; }

// A word of each lane's bf16 numbers: that of `first` in the upper half. REQUIRES: these are
// numbers of bf16.
DPT_SIMD Vector joined(Vector first, Vector second) {
  return (Vector)(upper(first) | ((Words)second >> 16));
}

// The words of 2 * kLanes neighboring factors: [first, second].
DPT_SIMD Vector joined_neighbors(Vector first, Vector second) {
#if defined(__AVX512F__)
  static constexpr uint16_t kUpper[32] = {3,  1,  7,  5,  11, 9,  15, 13, 19, 17, 23,
                                          21, 27, 25, 31, 29, 35, 33, 39, 37, 43, 41,
                                          47, 45, 51, 49, 55, 53, 59, 57, 63, 61};
  return _mm512_castsi512_ps(_mm512_permutex2var_epi16(
      _mm512_castps_si512(first), _mm512_loadu_si512(kUpper), _mm512_castps_si512(second)));
#else
  float both[2 * kLanes];
  store(both, first);
  store(both + kLanes, second);
  Vector even, odd;
  for (int i = 0; i < kLanes; ++i) {
    even[i] = both[2 * i];
    odd[i] = both[2 * i + 1];
  }
  return joined(even, odd);
#endif
}

// The instruction, and two fma that compute the same.
struct Emulated {
  DPT_SIMD Vector multiply(Vector a, Vector b, Vector sum) {
    sum = fma((Vector)upper(a), (Vector)upper(b), sum);
    return fma((Vector)((Words)a << 16), (Vector)((Words)b << 16), sum);
  }
};
#if defined(__AVX512F__)
// In assembler, since the rest of this library must not use AVX512-BF16.
struct Instruction {
  DPT_SIMD Vector multiply(Vector a, Vector b, Vector sum) {
    __asm__("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
    return sum;
  }
};
#endif

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

  // Where an odd depth leaves no second factor: 0 in A and -0 here, whose product -0 changes no
  // sum.
  DPT_SIMD Vector nothing() { return (Vector)(Words{} + 0x80000000U); }

  // panel[k / 2, n] = b[row k, n] and b[row k + 1, n], followed by anything.
  static void pack(const float* b, size_t stride, const uint32_t* rows, size_t depth,
                   size_t columns, float* panel) {
    const size_t low = smaller(columns, kLanes), high = columns - low;
    const Mask masks[2] = {first(low), first(high)};
    for (size_t k = 0; k < depth; k += 2, panel += kTileColumns) {
      const float* const from = b + row_at(rows, k) * stride;
      const float* const next = k + 1 < depth ? b + row_at(rows, k + 1) * stride : nullptr;
      for (size_t v = 0; v < (high > 0 ? 2 : 1); ++v)
        store(panel + v * kLanes,
              joined(load_first(from + v * kLanes, masks[v]),
                     next != nullptr ? load_first(next + v * kLanes, masks[v]) : nothing()));
      if (high == 0) store(panel + kLanes, zero());
    }
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
