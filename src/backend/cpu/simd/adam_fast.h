// Adam's step without the division unit. Only for .inc.cpp files.
//
// sqrt and division of 16 floats take 18 and 16 cycles, everything else of a step about 8. Here
// both come from 14-bit estimates and one step of Newton (relative error below 2^-22 together, see
// Note [tolerance] in simd.h).
#pragma once

#include "backend/cpu/simd/vector.h"
#include "graph/optimizer_formulas.h"

namespace dpt::DPT_ISA {

#if defined(__AVX512F__)

// Below it a root that is not exact near 0 would be seen.
constexpr float kAdamFastEps = 1e-16F;

// sqrt(x) for x >= 0, infinity and nan; denormal x give less than 1.1e-19.
DPT_SIMD __m512 fast_root(__m512 x) {
  const __m512 least = _mm512_set1_ps(1.17549435e-38F);
  const __m512 y = _mm512_rsqrt14_ps(_mm512_max_ps(least, x));  // nan: the second operand
  const __m512 root = _mm512_mul_ps(x, y);
  const __m512 half = _mm512_mul_ps(y, _mm512_set1_ps(0.5F));
  const __m512 rest = _mm512_fnmadd_ps(root, root, x);  // x - root^2
  const __m512 better = _mm512_fmadd_ps(rest, half, root);
  const __mmask16 infinite = _mm512_cmp_ps_mask(x, _mm512_set1_ps(__builtin_inff()), _CMP_EQ_OQ);
  return _mm512_mask_mov_ps(better, infinite, x);
}

// a / d for d > 0; a step of Newton on the quotient. d = infinity gives less than 1e-37 * a.
DPT_SIMD __m512 fast_quotient(__m512 a, __m512 d) {
  d = _mm512_min_ps(_mm512_set1_ps(3.40282347e+38F), d);  // nan: the second operand
  const __m512 r = _mm512_rcp14_ps(d);
  const __m512 q = _mm512_mul_ps(a, r);
  const __m512 rest = _mm512_fnmadd_ps(q, d, a);
  return _mm512_fmadd_ps(rest, r, q);
}

// The first elements, whole vectors of them; returns how many.
template <bool kAmsgrad>
DPT_SIMD size_t adam_fast(const formula::Adam<float>& s, float* w, float* m, float* v, float* top,
                          const float* g, size_t count) {
  size_t i = 0;
  const __m512 sign = _mm512_set1_ps(s.maximize ? -1.0F : 1.0F);
  for (; i + 16 <= count; i += 16) {
    __m512 weight = _mm512_mul_ps(load(w + i), all(s.keep));
    __m512 gradient = _mm512_mul_ps(load(g + i), sign);
    if (s.weight_decay != 0) gradient = add(gradient, _mm512_mul_ps(all(s.weight_decay), weight));
    const __m512 old = load(m + i);
    const __m512 mean =
        add(old, _mm512_mul_ps(all(s.one_minus_beta1), _mm512_sub_ps(gradient, old)));
    __m512 square = add(_mm512_mul_ps(load(v + i), all(s.beta2)),
                        _mm512_mul_ps(_mm512_mul_ps(all(s.one_minus_beta2), gradient), gradient));
    store(m + i, mean);
    store(v + i, square);
    if constexpr (kAmsgrad) {
      square = _mm512_max_ps(load(top + i), square);
      store(top + i, square);
    }
    const __m512 denominator =
        add(_mm512_mul_ps(fast_root(square), all(s.inverse_correction)), all(s.eps));
    const __m512 step = _mm512_mul_ps(all(s.step_size), mean);
    store(w + i, _mm512_sub_ps(weight, fast_quotient(step, denominator)));
  }
  return i;
}

#endif

}  // namespace dpt::DPT_ISA
