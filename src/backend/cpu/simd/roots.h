// Square roots, rounded correctly: the bits of sqrt. Only for .inc.cpp files.
//
// A square root of 16 lanes keeps AVX-512's divider busy for 18 cycles, when it may still be at
// work on a division. Newton's iteration on the other ports costs 6: Markstein's sequence, as in
// Cornea, Harrison, Tang, "Scientific Computing on Itanium", 2002, ends in one fma whose rounding
// is that of the exact root. It needs fma's remainder to be exact, so numbers near 0, and 0 itself,
// take the instruction.
#pragma once

#include "backend/cpu/simd/lanes.h"

namespace dpt::DPT_ISA {

#if defined(__AVX512F__)
DPT_SIMD __m512 square_root(__m512 a) {
  // As integers, numbers of one sign are in order; negative ones are behind all others, nan too.
  const auto bits = [](float x) __attribute__((always_inline)) {
    return _mm512_castps_si512(all(x));
  };
  const __m512i least = bits(0x1p-96F);
  const __m512i above = _mm512_sub_epi32(_mm512_castps_si512(a), least);
  const __m512i room = _mm512_sub_epi32(bits(0x1p126F), least);
  if (_mm512_cmpgt_epu32_mask(above, room) != 0) [[unlikely]] {
    const __m512i raw = _mm512_castps_si512(a);
    return _mm512_test_epi32_mask(raw, raw) == 0 ? a : _mm512_sqrt_ps(a);  // weights of dead pixels
  }
  const __m512 y = _mm512_rsqrt14_ps(a);
  __m512 root = _mm512_mul_ps(a, y), half = _mm512_mul_ps(all(0.5F), y);
  const __m512 error = _mm512_fnmadd_ps(root, half, all(0.5F));
  root = fma(root, error, root);
  half = fma(half, error, half);
  return fma(_mm512_fnmadd_ps(root, root, a), half, root);
}
#elif defined(__AVX2__)
DPT_SIMD __m256 square_root(__m256 a) { return _mm256_sqrt_ps(a); }
#else
DPT_SIMD Vector square_root(Vector a) {
  return Vector{__builtin_sqrtf(a[0]), __builtin_sqrtf(a[1]), __builtin_sqrtf(a[2]),
                __builtin_sqrtf(a[3])};
}
#endif

DPT_SIMD Lanes square_root(Lanes a) { return square_root(a.v); }

}  // namespace dpt::DPT_ISA
