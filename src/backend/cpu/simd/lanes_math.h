// exp, log and similar functions on Lanes, without branches and tables. Errors are at most 2 ulp
// unless stated otherwise (tests/backend/cpu/simd/elementwise_test.cpp). Results for inf, nan and
// subnormals are those of the C library. A lane's result does not depend on its position.
//
// exp and log: polynomials and range reduction of Cephes' expf and logf (Moshier 1992).
#pragma once

#include "backend/cpu/simd/lanes.h"

namespace dpt::DPT_ISA {

DPT_SIMD Lanes abs(Lanes x) { return (Vector)((Ints)x.v & 0x7fffffff); }
DPT_SIMD Lanes infinity() { return all(__builtin_inff()); }

// 1 / x. REQUIRES: x >= 1 or nan.
DPT_SIMD Lanes reciprocal(Lanes x) {
#if defined(__AVX512F__)
  const Lanes r = _mm512_rcp14_ps(x.v);
  // One Newton step. It would turn inf * 0 into nan.
  return select(x == infinity(), r, madd(r, fma(-x.v, r.v, all(1)), r));
#else
  return Lanes(1) / x;
#endif
}

// x = n ln 2 + r with |r| <= ln 2 / 2, and exp(r) - 1.
struct Reduced {
  Lanes n, expm1_r;
};
DPT_SIMD Reduced reduce_exp(Lanes x) {
  const Lanes shifter(12582912);  // 1.5 * 2^23: adding it rounds to an integer
  const Lanes n = madd(x, Lanes(1.44269504088896341), shifter) - shifter;
  Lanes r = madd(n, Lanes(-0.693359375), x);
  r = madd(n, Lanes(2.12194440e-4), r);
  Lanes p(1.9875691500e-4);
  p = madd(p, r, Lanes(1.3981999507e-3));
  p = madd(p, r, Lanes(8.3334519073e-3));
  p = madd(p, r, Lanes(4.1665795894e-2));
  p = madd(p, r, Lanes(1.6666665459e-1));
  p = madd(p, r, Lanes(5.0000001201e-1));
  return {n, madd(p, r * r, r)};
}

// x * 2^n for integers n, |n| <= 252.
DPT_SIMD Lanes scale(Lanes x, Lanes n) {
#if defined(__AVX512F__)
  return _mm512_scalef_ps(x.v, n.v);
#else
  const Ints whole = __builtin_convertvector(n.v, Ints);
  const Ints half = whole >> 1;
  return x * Lanes((Vector)((half + 127) << 23)) * Lanes((Vector)((whole - half + 127) << 23));
#endif
}

// Clamps x to [low, high]; a nan remains a nan.
DPT_SIMD Lanes held(Lanes x, double low, double high) {
  const Lanes up = select(x < Lanes(low), Lanes(low), x);
  return select(up > Lanes(high), Lanes(high), up);
}

// Lanes whose result is 0 are set to 0, since a subnormal result costs 150 cycles and the lanes
// behind the end of a row are exp(-inf).
DPT_SIMD Lanes exp(Lanes x) {
  const Which nothing = x < Lanes(-104);
  const Reduced e = reduce_exp(select(nothing, Lanes(0), select(x > Lanes(89), Lanes(89), x)));
  return select(nothing, Lanes(0), scale(Lanes(1) + e.expm1_r, e.n));
}

DPT_SIMD Lanes expm1(Lanes x) {
  const Reduced e = reduce_exp(held(x, -30, 89));  // below -30 the result is -1
  const Lanes power = scale(Lanes(1), e.n);        // inf for n = 128, handled below
  const Lanes y = select(power == infinity(), scale(Lanes(1) + e.expm1_r, e.n),
                         madd(power, e.expm1_r, power - Lanes(1)));
  return select(x == Lanes(0), x, y);
}

DPT_SIMD Lanes log(Lanes x) {
  const Which tiny = x < Lanes(1.17549435e-38);
  const Lanes normal = select(tiny, x * Lanes(8388608), x);
  const Ints bits = (Ints)normal.v;
  const Ints exponent = ((bits >> 23) & 0xff) - 126;
  Lanes e = __builtin_convertvector(exponent, Vector);
  e = select(tiny, e - Lanes(23), e);
  Lanes m = (Vector)((bits & 0x007fffff) | 0x3f000000);  // [0.5, 1)
  const Which low = m < Lanes(0.707106781186547524);
  e = select(low, e - Lanes(1), e);
  m = select(low, m + m, m) - Lanes(1);
  Lanes p(7.0376836292e-2);
  p = madd(p, m, Lanes(-1.1514610310e-1));
  p = madd(p, m, Lanes(1.1676998740e-1));
  p = madd(p, m, Lanes(-1.2420140846e-1));
  p = madd(p, m, Lanes(1.4249322787e-1));
  p = madd(p, m, Lanes(-1.6668057665e-1));
  p = madd(p, m, Lanes(2.0000714765e-1));
  p = madd(p, m, Lanes(-2.4999993993e-1));
  p = madd(p, m, Lanes(3.3333331174e-1));
  const Lanes z = m * m;
  Lanes y = madd(p * m, z, e * Lanes(-2.12194440e-4));
  y = madd(z, Lanes(-0.5), y);
  y = madd(e, Lanes(0.693359375), m + y);
  y = select(x < infinity(), y, x);  // inf and nan
  y = select(x < Lanes(0), Lanes(__builtin_nanf("")), y);
  return select(x == Lanes(0), -infinity(), y);
}

// log(1 + x) with a correction for the rounding of 1 + x (Kahan; Higham 2002, section 1.14.1).
// Error: 4 ulp.
DPT_SIMD Lanes log1p(Lanes x) {
  const Lanes u = Lanes(1) + x;
  const Lanes y = log(u) * (x / (u - Lanes(1)));
  return select(u == Lanes(1), x, select(u < infinity(), y, u));
}

// t / (t + 2) with t = exp(2 |x|) - 1. Error: 4 ulp.
DPT_SIMD Lanes tanh(Lanes x) {
  const Lanes a = abs(x);
  const Lanes t = expm1(select(a > Lanes(10), Lanes(20), a + a));
  const Lanes y = t / (t + Lanes(2));
  return (Vector)((Ints)y.v | ((Ints)x.v & (Ints)all(-0.0F)));
}

// x + x P(x^2) near 0, else 1 - exp(x (Q(x) - 1)); both polynomials were fitted for this file.
// Error: 3 ulp.
DPT_SIMD Lanes erf(Lanes x) {
  const Lanes a = abs(x), s = x * x;
  Lanes p(8.185090701e-05);
  p = madd(p, s, Lanes(-8.097702521e-04));
  p = madd(p, s, Lanes(5.196951795e-03));
  p = madd(p, s, Lanes(-2.685770579e-02));
  p = madd(p, s, Lanes(1.128366366e-01));
  p = madd(p, s, Lanes(-3.761263192e-01));
  p = madd(p, s, Lanes(1.283791661e-01));
  const Lanes small = madd(p, x, x);
  const Lanes t = select(a > Lanes(4), Lanes(4), a);
  Lanes q(-1.123146558e-05);
  q = madd(q, t, Lanes(3.228053974e-04));
  q = madd(q, t, Lanes(-3.642464988e-03));
  q = madd(q, t, Lanes(2.376207523e-02));
  q = madd(q, t, Lanes(-1.062368900e-01));
  q = madd(q, t, Lanes(-6.351513267e-01));
  q = madd(q, t, Lanes(-1.286484897e-01));
  const Lanes large = Lanes(1) - exp(madd(q, t, -t));
  const Lanes y = (Vector)((Ints)large.v | ((Ints)x.v & (Ints)all(-0.0F)));
  return select(a < Lanes(0.9375), small, select(a == a, y, x));
}

// The largest of n numbers; -inf if n is 0.
DPT_SIMD float top_of(const float* x, size_t n) {
  Lanes top[4];
  for (Lanes& t : top) t = -infinity();
  size_t i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
    DPT_UNROLL
    for (int v = 0; v < 4; ++v) top[v] = max(top[v], load(x + i + v * kLanes));
  }
  each_vector(
      n - i, [&](size_t j, auto at) __attribute__((always_inline)) {
        top[0] = max(top[0], at.or_lowest(at.get(x + i + j)));
      });
  return max_of(max(max(top[0], top[1]), max(top[2], top[3])));
}

}  // namespace dpt::DPT_ISA
