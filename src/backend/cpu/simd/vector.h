// A vector of floats as wide as the instruction set, and the few operations that compilers do not
// find by themselves. Only for .inc.cpp files, see isa.h.
//
// fma is fused if the instruction set has it, else a product and a sum, each rounded. Loads and
// stores need no alignment.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "backend/cpu/simd/isa.h"
#include "base/units.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace dpt::DPT_ISA {

#if defined(__AVX512F__)

using Vector = __m512;
using Mask = __mmask16;
constexpr int kLanes = 16;

DPT_SIMD Vector zero() { return _mm512_setzero_ps(); }
DPT_SIMD Vector all(float x) { return _mm512_set1_ps(x); }
DPT_SIMD Vector load(const float* p) { return _mm512_loadu_ps(p); }
DPT_SIMD void store(float* p, Vector v) { _mm512_storeu_ps(p, v); }
DPT_SIMD Vector fma(Vector a, Vector b, Vector c) { return _mm512_fmadd_ps(a, b, c); }
DPT_SIMD Vector add(Vector a, Vector b) { return _mm512_add_ps(a, b); }
// A mask of the first n lanes, 0 <= n <= kLanes.
DPT_SIMD Mask first(size_t n) { return static_cast<Mask>((1U << n) - 1U); }
DPT_SIMD Vector load_first(const float* p, Mask m) { return _mm512_maskz_loadu_ps(m, p); }
DPT_SIMD void store_first(float* p, Mask m, Vector v) { _mm512_mask_storeu_ps(p, m, v); }
// A bit for each lane that is not 0, the first lane in the lowest bit; a nan is not 0.
DPT_SIMD uint64_t nonzero(Vector v) { return _mm512_cmp_ps_mask(v, zero(), _CMP_NEQ_UQ); }

#elif defined(__AVX2__)

using Vector = __m256;
using Mask = __m256i;
constexpr int kLanes = 8;

DPT_SIMD Vector zero() { return _mm256_setzero_ps(); }
DPT_SIMD Vector all(float x) { return _mm256_set1_ps(x); }
DPT_SIMD Vector load(const float* p) { return _mm256_loadu_ps(p); }
DPT_SIMD void store(float* p, Vector v) { _mm256_storeu_ps(p, v); }
DPT_SIMD Vector fma(Vector a, Vector b, Vector c) { return _mm256_fmadd_ps(a, b, c); }
DPT_SIMD Vector add(Vector a, Vector b) { return _mm256_add_ps(a, b); }
DPT_SIMD Mask first(size_t n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)),
                            _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
DPT_SIMD Vector load_first(const float* p, Mask m) { return _mm256_maskload_ps(p, m); }
// Whole vectors use an ordinary store, since a masked store takes a dozen cycles on some cores.
DPT_SIMD void store_first(float* p, Mask m, Vector v) {
  if (_mm256_movemask_ps(_mm256_castsi256_ps(m)) == 0xFF) {
    store(p, v);
  } else {
    _mm256_maskstore_ps(p, m, v);
  }
}
DPT_SIMD uint64_t nonzero(Vector v) {
  return static_cast<unsigned>(_mm256_movemask_ps(_mm256_cmp_ps(v, zero(), _CMP_NEQ_UQ)));
}

#else  // any machine: the compiler's vectors

using Vector = float __attribute__((vector_size(16)));
using Mask = size_t;
constexpr int kLanes = 4;

DPT_SIMD Vector zero() { return Vector{}; }
DPT_SIMD Vector all(float x) { return Vector{x, x, x, x}; }
DPT_SIMD Vector load(const float* p) {
  Vector v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}
DPT_SIMD void store(float* p, Vector v) { __builtin_memcpy(p, &v, sizeof v); }
DPT_SIMD Vector fma(Vector a, Vector b, Vector c) { return a * b + c; }
DPT_SIMD Vector add(Vector a, Vector b) { return a + b; }
DPT_SIMD Mask first(size_t n) { return n; }
DPT_SIMD Vector load_first(const float* p, Mask n) {
  return Vector{n > 0 ? p[0] : 0, n > 1 ? p[1] : 0, n > 2 ? p[2] : 0, n > 3 ? p[3] : 0};
}
DPT_SIMD void store_first(float* p, Mask n, Vector v) {
  if (n > 0) p[0] = v[0];
  if (n > 1) p[1] = v[1];
  if (n > 2) p[2] = v[2];
  if (n > 3) p[3] = v[3];
}
DPT_SIMD uint64_t nonzero(Vector v) {
  return (v[0] != 0 ? 1U : 0U) | (v[1] != 0 ? 2U : 0U) | (v[2] != 0 ? 4U : 0U) |
         (v[3] != 0 ? 8U : 0U);
}

#endif

// keep: forces v into a register here. Compilers fold a load into each fma that uses it, although
// loads are the bottleneck.
// own_zero: a 0 that the compiler does not copy from another register, since copies compete with
// fma.
#if defined(__AVX512F__)
DPT_SIMD void keep(Vector& v) { __asm__("" : "+v"(v)); }
DPT_SIMD Vector own_zero() {
  Vector v;
  __asm__("vpxord %0, %0, %0" : "=v"(v));
  return v;
}
#elif defined(__AVX2__)
DPT_SIMD void keep(Vector& v) { __asm__("" : "+x"(v)); }
DPT_SIMD Vector own_zero() {
  Vector v;
  __asm__("vxorps %0, %0, %0" : "=x"(v));
  return v;
}
#else
DPT_SIMD void keep(Vector&) {}
DPT_SIMD Vector own_zero() { return zero(); }
#endif

// Fetches the line so many bytes behind p, to write to it; there need not be anything. Other cores
// may have read it, and would be asked to forget it for one line after the other by stores alone.
DPT_SIMD void own_line(const float* p, size_t behind) {
  __builtin_prefetch(reinterpret_cast<const void*>(reinterpret_cast<uintptr_t>(p) + behind), 1);
}

// The first steps of a sum over lanes, for two vectors at once: each block of kWidth lanes becomes
// half as wide, a's sums beside b's. With kWidth = 4: [a0+a2 a1+a3 b0+b2 b1+b3] in each block of 4.
// The same two lanes are added wherever a vector is used, so no result depends on the tile.
template <int kWidth>
DPT_SIMD Vector fold(Vector a, Vector b) {
#if defined(__AVX512F__)
  if constexpr (kWidth == 16) {
    return add(
        _mm512_mask_blend_ps(0xFF00, a, b),
        _mm512_castpd_ps(_mm512_shuffle_f64x2(_mm512_castps_pd(a), _mm512_castps_pd(b), 0x4E)));
  } else if constexpr (kWidth == 8) {
    const __m512i swapped = _mm512_setr_epi64(2, 3, 8, 9, 6, 7, 12, 13);
    return add(_mm512_mask_blend_ps(0xF0F0, a, b),
               _mm512_castpd_ps(
                   _mm512_permutex2var_pd(_mm512_castps_pd(a), swapped, _mm512_castps_pd(b))));
  } else if constexpr (kWidth == 4) {
    return add(_mm512_mask_blend_ps(0xCCCC, a, b),
               _mm512_castpd_ps(_mm512_shuffle_pd(_mm512_castps_pd(a), _mm512_castps_pd(b), 0x55)));
  } else {
    const __m512i swapped =
        _mm512_setr_epi32(1, 16, 3, 18, 5, 20, 7, 22, 9, 24, 11, 26, 13, 28, 15, 30);
    return add(_mm512_mask_blend_ps(0xAAAA, a, b), _mm512_permutex2var_ps(a, swapped, b));
  }
#elif defined(__AVX2__)
  if constexpr (kWidth == 8) {
    return add(_mm256_blend_ps(a, b, 0xF0), _mm256_permute2f128_ps(a, b, 0x21));
  } else if constexpr (kWidth == 4) {
    return add(_mm256_blend_ps(a, b, 0xCC),
               _mm256_castpd_ps(_mm256_shuffle_pd(_mm256_castps_pd(a), _mm256_castps_pd(b), 0x5)));
  } else {
    return add(_mm256_blend_ps(a, _mm256_moveldup_ps(b), 0xAA),
               _mm256_blend_ps(_mm256_movehdup_ps(a), b, 0xAA));
  }
#else
  if constexpr (kWidth == 4) {
    return Vector{a[0] + a[2], a[1] + a[3], b[0] + b[2], b[1] + b[3]};
  } else {
    return Vector{a[0] + a[1], b[0] + b[1], a[2] + a[3], b[2] + b[3]};
  }
#endif
}

// out[j] = the sum of the lanes of v[j], j < kCount. The two halves of a vector are added first.
template <int kCount>
DPT_SIMD void sum_lanes(const Vector* v, float* out) {
  constexpr int kGroup = kCount >= 16 && kLanes >= 16 ? 16
                         : kCount >= 8 && kLanes >= 8 ? 8
                         : kCount >= 4                ? 4
                         : kCount >= 2                ? 2
                                                      : 1;
  Vector r[kGroup];
  DPT_UNROLL
  for (int i = 0; i < kGroup; ++i) r[i] = v[i];
  constexpr int kLog = kLanes == 16 ? 4 : kLanes == 8 ? 3 : 2;
  DPT_UNROLL
  for (int stage = 0; stage < kLog; ++stage) {
    const int half = kGroup >> (stage + 1);
    const int rounds = half > 0 ? half : 1;
    DPT_UNROLL
    for (int i = 0; i < kGroup / 2 + 1; ++i) {
      if (i >= rounds) break;
      const Vector b = r[half > 0 ? i + half : i];
      r[i] = stage == kLog - 1   ? fold<2>(r[i], b)
             : stage == kLog - 2 ? fold<4>(r[i], b)
             : stage == kLog - 3 ? fold<(kLanes >= 8 ? 8 : 4)>(r[i], b)
                                 : fold<(kLanes >= 16 ? 16 : 4)>(r[i], b);
    }
  }
  if constexpr (kGroup == kLanes) {
    store(out, r[0]);
  } else {
    float lanes[kLanes];
    store(lanes, r[0]);
    DPT_UNROLL
    for (int j = 0; j < kGroup; ++j) out[j] = lanes[j * (kLanes / kGroup)];
  }
  if constexpr (kCount > kGroup) sum_lanes<kCount - kGroup>(v + kGroup, out + kGroup);
}

// to[c * stride + r] = from[r][c] for kLanes rows and kLanes columns.
DPT_SIMD void transpose(const float* const* from, size_t c, float* to, size_t stride) {
#if defined(__AVX512F__)
  DPT_UNROLL
  for (int q = 0; q < 4; ++q) {
    __m512 v[4];
    DPT_UNROLL
    for (int r = 0; r < 4; ++r) {
      const size_t at = c + 4 * q;
      // A masked broadcast from memory is a load and a blend; an insert would be a shuffle, for
      // which there is only one port.
      v[r] = _mm512_broadcast_f32x4(_mm_loadu_ps(from[r] + at));
      v[r] = _mm512_mask_broadcast_f32x4(v[r], 0x00F0, _mm_loadu_ps(from[r + 4] + at));
      v[r] = _mm512_mask_broadcast_f32x4(v[r], 0x0F00, _mm_loadu_ps(from[r + 8] + at));
      v[r] = _mm512_mask_broadcast_f32x4(v[r], 0xF000, _mm_loadu_ps(from[r + 12] + at));
    }
    const __m512 a = _mm512_unpacklo_ps(v[0], v[1]), b = _mm512_unpackhi_ps(v[0], v[1]);
    const __m512 d = _mm512_unpacklo_ps(v[2], v[3]), e = _mm512_unpackhi_ps(v[2], v[3]);
    float* const row = to + 4 * q * stride;
    store(row, _mm512_shuffle_ps(a, d, 0x44));
    store(row + stride, _mm512_shuffle_ps(a, d, 0xEE));
    store(row + 2 * stride, _mm512_shuffle_ps(b, e, 0x44));
    store(row + 3 * stride, _mm512_shuffle_ps(b, e, 0xEE));
  }
#elif defined(__AVX2__)
  DPT_UNROLL
  for (int q = 0; q < 2; ++q) {
    __m256 v[4];
    DPT_UNROLL
    for (int r = 0; r < 4; ++r)
      v[r] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(from[r] + c + 4 * q)),
                                  _mm_loadu_ps(from[r + 4] + c + 4 * q), 1);
    const __m256 a = _mm256_unpacklo_ps(v[0], v[1]), b = _mm256_unpackhi_ps(v[0], v[1]);
    const __m256 d = _mm256_unpacklo_ps(v[2], v[3]), e = _mm256_unpackhi_ps(v[2], v[3]);
    float* const row = to + 4 * q * stride;
    store(row, _mm256_shuffle_ps(a, d, 0x44));
    store(row + stride, _mm256_shuffle_ps(a, d, 0xEE));
    store(row + 2 * stride, _mm256_shuffle_ps(b, e, 0x44));
    store(row + 3 * stride, _mm256_shuffle_ps(b, e, 0xEE));
  }
#else
  for (int q = 0; q < kLanes; ++q)
    for (int r = 0; r < kLanes; ++r) to[q * stride + r] = from[r][c + q];
#endif
}

}  // namespace dpt::DPT_ISA
