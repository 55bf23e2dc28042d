// Square roots that are correctly rounded: the bits of sqrt. Only for .inc.cpp files.
//
// A square root of 16 lanes occupies AVX-512's divider for 18 cycles, and it may still be busy with
// a division. Newton's iteration on the other ports takes 6. Markstein's sequence (Cornea,
// Harrison, Tang, "Scientific Computing on Itanium", 2002) ends in one fma that rounds like the
// exact root. It requires that fma's remainder is exact, so 0 and numbers near 0 use the
// instruction instead.
#pragma once

#include "backend/cpu/simd/lanes.h"

namespace dpt::DPT_ISA {

#if defined(__AVX512F__)
DPT_SIMD __m512 square_root(__m512 a) {
  // Compared as unsigned integers, positive numbers are in order; negative numbers and nan are
  // larger.
  const auto bits = [](float x) __attribute__((always_inline)) {
    return _mm512_castps_si512(all(x));
  };
  const __m512i least = bits(0x1p-96F);
  const __m512i above = _mm512_sub_epi32(_mm512_castps_si512(a), least);
  const __m512i room = _mm512_sub_epi32(bits(0x1p126F), least);
  if (_mm512_cmpgt_epu32_mask(above, room) != 0) [[unlikely]] {
    const __m512i raw = _mm512_castps_si512(a);
    // All 0 for the weights of pixels that are always 0.
    return _mm512_test_epi32_mask(raw, raw) == 0 ? a : _mm512_sqrt_ps(a);
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
