// Square roots, rounded correctly: the bits of sqrt. Only for .inc.cpp files.
//
// A square root of 16 lanes keeps AVX-512's divider busy for 18 cycles, when it may still be at
// work on a division. Newton's iteration on the other ports costs 6: Markstein's sequence, as in
// Cornea, Harrison, Tang, "Scientific Computing on Itanium", 2002, ends in one fma whose rounding
// is that of the exact root. It needs fma's remainder to be exact, so numbers near 0 take the
// instruction.
#pragma once

#include "backend/cpu/simd/lanes.h"

namespace dpt::DPT_ISA {

#if defined(__AVX512F__)
DPT_SIMD __m512 square_root(__m512 a) {
  const __mmask16 zeros = _mm512_cmp_ps_mask(a, zero(), _CMP_EQ_OQ);
  const __mmask16 plain = _mm512_cmp_ps_mask(a, all(0x1p-96F), _CMP_GE_OQ) &
                          _mm512_cmp_ps_mask(a, all(0x1p126F), _CMP_LE_OQ);
  if (static_cast<__mmask16>(zeros | plain) != 0xFFFF) [[unlikely]]
    return _mm512_sqrt_ps(a);
  const __m512 y = _mm512_rsqrt14_ps(a);
  __m512 root = _mm512_mul_ps(a, y), half = _mm512_mul_ps(all(0.5F), y);
  const __m512 error = _mm512_fnmadd_ps(root, half, all(0.5F));
  root = fma(root, error, root);
  half = fma(half, error, half);
  root = fma(_mm512_fnmadd_ps(root, root, a), half, root);
  return _mm512_mask_mov_ps(root, zeros, a);
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
