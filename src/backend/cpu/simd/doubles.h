// Lanes in double, as two vectors: for sums over many elements and formulas with cancellation. Only
// for .inc.cpp files, see isa.h.
#pragma once

#include "backend/cpu/simd/lanes.h"

namespace dpt::DPT_ISA {

#if defined(__AVX512F__)
using Half = __m512d;
#elif defined(__AVX2__)
using Half = __m256d;
#else
using Half = double __attribute__((vector_size(16)));
#endif

struct Doubles {
  Half low, high;
};

DPT_SIMD Doubles operator+(Doubles a, Doubles b) { return {a.low + b.low, a.high + b.high}; }
DPT_SIMD Doubles operator-(Doubles a, Doubles b) { return {a.low - b.low, a.high - b.high}; }
DPT_SIMD Doubles& operator+=(Doubles& a, Doubles b) { return a = a + b; }

// Loads p[0, kLanes). Half by half, since compilers copy a whole structure through memory.
DPT_SIMD Doubles load(const double* p) {
  Doubles d;
  __builtin_memcpy(&d.low, p, sizeof d.low);
  __builtin_memcpy(&d.high, p + kLanes / 2, sizeof d.high);
  return d;
}
DPT_SIMD void store(double* p, Doubles d) {
  __builtin_memcpy(p, &d.low, sizeof d.low);
  __builtin_memcpy(p + kLanes / 2, &d.high, sizeof d.high);
}

#if defined(__AVX512F__)
DPT_SIMD Doubles madd(Doubles a, Doubles b, Doubles c) {
  return {_mm512_fmadd_pd(a.low, b.low, c.low), _mm512_fmadd_pd(a.high, b.high, c.high)};
}
DPT_SIMD Doubles widen(Lanes x) {
  return {_mm512_cvtps_pd(_mm512_castps512_ps256(x.v)),
          _mm512_cvtps_pd(_mm512_extractf32x8_ps(x.v, 1))};
}
DPT_SIMD Lanes narrow(Doubles d) {
  return _mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps(d.low)), _mm512_cvtpd_ps(d.high),
                            1);
}
#elif defined(__AVX2__)
DPT_SIMD Doubles madd(Doubles a, Doubles b, Doubles c) {
  return {_mm256_fmadd_pd(a.low, b.low, c.low), _mm256_fmadd_pd(a.high, b.high, c.high)};
}
DPT_SIMD Doubles widen(Lanes x) {
  return {_mm256_cvtps_pd(_mm256_castps256_ps128(x.v)),
          _mm256_cvtps_pd(_mm256_extractf128_ps(x.v, 1))};
}
DPT_SIMD Lanes narrow(Doubles d) {
  return _mm256_set_m128(_mm256_cvtpd_ps(d.high), _mm256_cvtpd_ps(d.low));
}
#else
DPT_SIMD Doubles madd(Doubles a, Doubles b, Doubles c) {
  return {a.low * b.low + c.low, a.high * b.high + c.high};
}
DPT_SIMD Doubles widen(Lanes x) { return {Half{x.v[0], x.v[1]}, Half{x.v[2], x.v[3]}}; }
DPT_SIMD Lanes narrow(Doubles d) {
  return Vector{static_cast<float>(d.low[0]), static_cast<float>(d.low[1]),
                static_cast<float>(d.high[0]), static_cast<float>(d.high[1])};
}
#endif

// Loads a vector and widens it. For a whole vector, each half is converted while it is loaded,
// which saves a shuffle.
DPT_SIMD Doubles get_wide(Whole at, const float* p) {
#if defined(__AVX512F__)
  (void)at;
  return {_mm512_cvtps_pd(_mm256_loadu_ps(p)), _mm512_cvtps_pd(_mm256_loadu_ps(p + 8))};
#elif defined(__AVX2__)
  (void)at;
  return {_mm256_cvtps_pd(_mm_loadu_ps(p)), _mm256_cvtps_pd(_mm_loadu_ps(p + 4))};
#else
  return widen(at.get(p));
#endif
}
DPT_SIMD Doubles get_wide(Rest at, const float* p) { return widen(at.get(p)); }
DPT_SIMD Doubles get_wide(Whole at, const uint16_t* p) {
#if defined(__AVX512F__)
  (void)at;
  const __m512 both = load(p);
  return {_mm512_cvtps_pd(_mm512_castps512_ps256(both)),
          _mm512_cvtps_pd(_mm512_extractf32x8_ps(both, 1))};
#else
  return widen(at.get(p));
#endif
}
DPT_SIMD Doubles get_wide(Rest at, const uint16_t* p) { return widen(at.get(p)); }

}  // namespace dpt::DPT_ISA
