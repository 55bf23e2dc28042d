// The tile of large products whose right operand is packed into panels. Only for .inc.cpp files,
// see isa.h.
//
// An operand consists of words of 32 bits. A class of factors (gemm_loops.h) says what a word
// holds; its `multiply(a, b, sum)` adds the product of the words of a and b to sum in each lane.
#pragma once

#include "backend/cpu/simd/rounding.h"
#include "backend/cpu/simd/tile.h"

namespace dpt::DPT_ISA {

// One tile. Word (r, k) of A is a[r * row + k * step].
struct PanelTile {
  size_t depth;  // words
  const float* a;
  size_t row, step;
  const float* panel;  // [depth, 2 vectors]
  float* c[kTileRows];
  Mask masks[2];
  bool full;    // both vectors are complete
  bool narrow;  // the second vector is empty
  // Non-temporal stores: rows of C are complete and aligned, and C is larger than the caches.
  bool streams;
  bool adds;          // adds the result to C
  bool continues;     // continues the chains in C
  const float* bias;  // [2 vectors] added last; may be null
  RoundTo to;         // rounding of the result
  const char* ahead;  // prefetched meanwhile: one line per k
  size_t ahead_step;
};

#if defined(__AVX512F__)
DPT_SIMD void store_past_caches(float* p, Vector v) { _mm512_stream_ps(p, v); }
#elif defined(__AVX2__)
DPT_SIMD void store_past_caches(float* p, Vector v) { _mm256_stream_ps(p, v); }
#else
DPT_SIMD void store_past_caches(float* p, Vector v) { store(p, v); }
#endif

template <int kRows, void (*kPut)(float*, Vector)>
DPT_SIMD void put(float* const* c, const Vector (*sum)[2]) {
  DPT_UNROLL
  for (int r = 0; r < kRows; ++r) {
    kPut(c[r], sum[r][0]);
    kPut(c[r] + kLanes, sum[r][1]);
  }
}

template <class Factors, int kRows, int kVectors>
[[gnu::noinline]] static void panel_tile(const PanelTile& t) {
  Vector sum[kRows][kVectors];
  DPT_UNROLL
  for (int r = 0; r < kRows; ++r) {
    DPT_UNROLL
    for (int v = 0; v < kVectors; ++v) sum[r][v] = zero();
  }
  if (t.continues) {
    DPT_UNROLL
    for (int r = 0; r < kRows; ++r) {
      DPT_UNROLL
      for (int v = 0; v < kVectors; ++v) sum[r][v] = load_first(t.c[r] + v * kLanes, t.masks[v]);
    }
  }
  // A pointer to every third row: the next two rows are reached with an index times 1 and 2.
  constexpr int kPointers = (kRows + 2) / 3;
  const char* a[kPointers];
  const size_t row = t.row * sizeof(float), step = t.step * sizeof(float);
  DPT_UNROLL
  for (int i = 0; i < kPointers; ++i) {
    a[i] = reinterpret_cast<const char*>(t.a) + 3 * i * row;
    __asm__("" : "+r"(a[i]));
  }
  const float* b = t.panel;
  const char* ahead = t.ahead;
  const size_t ahead_step = t.ahead_step;
  for (size_t k = t.depth; k > 0; --k) {
    Vector right[kVectors];
    DPT_UNROLL
    for (int v = 0; v < kVectors; ++v) right[v] = load(b + v * kLanes);
    __builtin_prefetch(b + 16 * kTileColumns);
    __builtin_prefetch(b + 16 * kTileColumns + kLanes);
    __builtin_prefetch(ahead, 0, 2);
    DPT_UNROLL
    for (int r = 0; r < kRows; ++r) {
      const Vector left = all(*reinterpret_cast<const float*>(a[r / 3] + r % 3 * row));
      DPT_UNROLL
      for (int v = 0; v < kVectors; ++v) sum[r][v] = Factors::multiply(left, right[v], sum[r][v]);
    }
    DPT_UNROLL
    for (int i = 0; i < kPointers; ++i) {
      a[i] += step;
      __asm__("" : "+r"(a[i]));
    }
    b += kTileColumns;
    ahead += ahead_step;
  }
  if (t.bias != nullptr) {
    DPT_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      const Vector bias = load_first(t.bias + v * kLanes, t.masks[v]);
      DPT_UNROLL
      for (int r = 0; r < kRows; ++r) sum[r][v] = add(sum[r][v], bias);
    }
  }
  if (t.to != RoundTo::f32) {
    if (t.adds) {
      DPT_UNROLL
      for (int r = 0; r < kRows; ++r) {
        DPT_UNROLL
        for (int v = 0; v < kVectors; ++v)
          sum[r][v] = add(load_first(t.c[r] + v * kLanes, t.masks[v]), sum[r][v]);
      }
    }
    with_rounding(
        t.to, [&](auto round) __attribute__((always_inline)) {
          DPT_UNROLL
          for (int r = 0; r < kRows; ++r) {
            DPT_UNROLL
            for (int v = 0; v < kVectors; ++v) sum[r][v] = round(sum[r][v]).v;
          }
        });
  }
  const bool adds = t.adds && t.to == RoundTo::f32;
  if constexpr (kVectors == 2) {
    if (t.full && !adds) {
      if (t.streams) {
        put<kRows, store_past_caches>(t.c, sum);
      } else {
        put<kRows, store>(t.c, sum);
      }
      return;
    }
  }
  DPT_UNROLL
  for (int v = 0; v < kVectors; ++v) {
    const Mask mask = t.masks[v];
    if (adds) {
      DPT_UNROLL
      for (int r = 0; r < kRows; ++r)
        sum[r][v] = add(load_first(t.c[r] + v * kLanes, mask), sum[r][v]);
    }
    DPT_UNROLL
    for (int r = 0; r < kRows; ++r) store_first(t.c[r] + v * kLanes, mask, sum[r][v]);
  }
}

template <class Factors, int kRows = kTileRows>
DPT_SIMD void panel_tile_of(const PanelTile& t, size_t rows) {
  if constexpr (kRows > 1) {
    if (rows < static_cast<size_t>(kRows)) {
      panel_tile_of<Factors, kRows - 1>(t, rows);
      return;
    }
  }
  if (t.narrow) {
    panel_tile<Factors, kRows, 1>(t);
  } else {
    panel_tile<Factors, kRows, 2>(t);
  }
}

}  // namespace dpt::DPT_ISA
