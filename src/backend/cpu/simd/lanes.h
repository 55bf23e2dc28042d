// Lanes: a Vector with operators and comparisons, so that a formula written for numbers works on
// vectors. Only for .inc.cpp files, see isa.h.
#pragma once

#include "backend/cpu/simd/vector.h"

namespace dpt::DPT_ISA {

typedef int32_t Ints __attribute__((vector_size(sizeof(Vector))));
typedef uint32_t Words __attribute__((vector_size(sizeof(Vector))));

#if defined(__AVX512F__)
using Choice = __mmask16;
#elif defined(__AVX2__)
using Choice = __m256;
#else
using Choice = Ints;
#endif

struct Lanes {
  Vector v;
  Lanes() = default;
  [[gnu::always_inline]] Lanes(Vector x) : v(x) {}
  [[gnu::always_inline]] explicit Lanes(double x) : v(all(static_cast<float>(x))) {}
};

// The result of a comparison: true or false for each lane.
struct Which {
  Choice c;
};

DPT_SIMD Lanes operator+(Lanes a, Lanes b) { return a.v + b.v; }
DPT_SIMD Lanes operator-(Lanes a, Lanes b) { return a.v - b.v; }
DPT_SIMD Lanes operator*(Lanes a, Lanes b) { return a.v * b.v; }
DPT_SIMD Lanes operator/(Lanes a, Lanes b) { return a.v / b.v; }
DPT_SIMD Lanes operator-(Lanes a) { return -a.v; }
DPT_SIMD Lanes& operator+=(Lanes& a, Lanes b) { return a = a + b; }
DPT_SIMD Lanes madd(Lanes a, Lanes b, Lanes c) { return fma(a.v, b.v, c.v); }

#if defined(__AVX512F__)
DPT_SIMD Which operator<(Lanes a, Lanes b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_LT_OQ)}; }
DPT_SIMD Which operator<=(Lanes a, Lanes b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_LE_OQ)}; }
DPT_SIMD Which operator==(Lanes a, Lanes b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_EQ_OQ)}; }
DPT_SIMD Lanes select(Which w, Lanes a, Lanes b) { return _mm512_mask_blend_ps(w.c, b.v, a.v); }
DPT_SIMD Lanes max(Lanes a, Lanes b) { return _mm512_max_ps(a.v, b.v); }
#elif defined(__AVX2__)
DPT_SIMD Which operator<(Lanes a, Lanes b) { return {_mm256_cmp_ps(a.v, b.v, _CMP_LT_OQ)}; }
DPT_SIMD Which operator<=(Lanes a, Lanes b) { return {_mm256_cmp_ps(a.v, b.v, _CMP_LE_OQ)}; }
DPT_SIMD Which operator==(Lanes a, Lanes b) { return {_mm256_cmp_ps(a.v, b.v, _CMP_EQ_OQ)}; }
DPT_SIMD Lanes select(Which w, Lanes a, Lanes b) { return _mm256_blendv_ps(b.v, a.v, w.c); }
DPT_SIMD Lanes max(Lanes a, Lanes b) { return _mm256_max_ps(a.v, b.v); }
#else
DPT_SIMD Which operator<(Lanes a, Lanes b) { return {a.v < b.v}; }
DPT_SIMD Which operator<=(Lanes a, Lanes b) { return {a.v <= b.v}; }
DPT_SIMD Which operator==(Lanes a, Lanes b) { return {a.v == b.v}; }
DPT_SIMD Lanes select(Which w, Lanes a, Lanes b) {
  return (Vector)((w.c & (Ints)a.v) | (~w.c & (Ints)b.v));
}
DPT_SIMD Lanes max(Lanes a, Lanes b) { return select(b < a, a, b); }
#endif
DPT_SIMD Which operator>(Lanes a, Lanes b) { return b < a; }
DPT_SIMD Which operator>=(Lanes a, Lanes b) { return b <= a; }

// Sum and maximum of all lanes. The order of the sum only depends on the instruction set.
DPT_SIMD float sum_of(Lanes a) {
#if defined(__AVX512F__)
  return _mm512_reduce_add_ps(a.v);
#else
  float x[kLanes];
  store(x, a.v);
  for (int half = kLanes / 2; half > 0; half /= 2)
    for (int i = 0; i < half; ++i) x[i] += x[i + half];
  return x[0];
#endif
}
DPT_SIMD float max_of(Lanes a) {
#if defined(__AVX512F__)
  return _mm512_reduce_max_ps(a.v);
#else
  float x[kLanes];
  store(x, a.v);
  for (int i = 1; i < kLanes; ++i) x[0] = x[0] < x[i] ? x[i] : x[0];
  return x[0];
#endif
}

// Numbers of bf16 in 16 bits. A vector that is stored holds numbers of bf16.
#if defined(__AVX512F__)
DPT_SIMD Vector from_bf16(__m256i halves) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16));
}
DPT_SIMD __m256i to_bf16(Vector v) {
  return _mm512_cvtepi32_epi16(_mm512_srli_epi32(_mm512_castps_si512(v), 16));
}
DPT_SIMD Vector load(const uint16_t* p) {
  return from_bf16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
DPT_SIMD void store(uint16_t* p, Vector v) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), to_bf16(v));
}
DPT_SIMD Vector load_first(const uint16_t* p, Mask m) {
  return from_bf16(_mm256_maskz_loadu_epi16(m, p));
}
DPT_SIMD void store_first(uint16_t* p, Mask m, Vector v) {
  _mm256_mask_storeu_epi16(p, m, to_bf16(v));
}
#else
DPT_SIMD Vector load(const uint16_t* p) {
  Words w;
  for (int i = 0; i < kLanes; ++i) w[i] = static_cast<uint32_t>(p[i]) << 16;
  return (Vector)w;
}
DPT_SIMD void store(uint16_t* p, Vector v) {
  const Words w = (Words)v >> 16;
  for (int i = 0; i < kLanes; ++i) p[i] = static_cast<uint16_t>(w[i]);
}
DPT_SIMD bool has_lane(Mask m, int i) {
#if defined(__AVX2__)
  return ((Ints)m)[i] != 0;
#else
  return static_cast<size_t>(i) < m;
#endif
}
DPT_SIMD Vector load_first(const uint16_t* p, Mask m) {
  Words w = {};
  for (int i = 0; i < kLanes; ++i)
    if (has_lane(m, i)) w[i] = static_cast<uint32_t>(p[i]) << 16;
  return (Vector)w;
}
DPT_SIMD void store_first(uint16_t* p, Mask m, Vector v) {
  const Words w = (Words)v >> 16;
  for (int i = 0; i < kLanes; ++i)
    if (has_lane(m, i)) p[i] = static_cast<uint16_t>(w[i]);
}
#endif

// How a loop accesses one vector of an array of floats, or of bf16: Whole: all lanes; Rest: the
// first few lanes at the end of the array, the other lanes are read as 0 and not written.
struct Whole {
  [[gnu::always_inline]] Lanes get(const float* p) const { return load(p); }
  [[gnu::always_inline]] void put(float* p, Lanes x) const { store(p, x.v); }
  [[gnu::always_inline]] Lanes get(const uint16_t* p) const { return load(p); }
  [[gnu::always_inline]] void put(uint16_t* p, Lanes x) const { store(p, x.v); }
  [[gnu::always_inline]] Lanes or_lowest(Lanes x) const { return x; }
};
struct Rest {
  Mask mask;
  Vector beyond;  // 0 in the lanes that are used, -inf in the others
  [[gnu::always_inline]] Lanes get(const float* p) const { return load_first(p, mask); }
  [[gnu::always_inline]] void put(float* p, Lanes x) const { store_first(p, mask, x.v); }
  [[gnu::always_inline]] Lanes get(const uint16_t* p) const { return load_first(p, mask); }
  [[gnu::always_inline]] void put(uint16_t* p, Lanes x) const { store_first(p, mask, x.v); }
  [[gnu::always_inline]] Lanes or_lowest(Lanes x) const { return x.v + beyond; }
};

DPT_SIMD Rest rest(size_t n) {
  static constexpr float low = -__builtin_inff();
  static constexpr float kBeyond[32] = {0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,
                                        0,   0,   0,   0,   0,   low, low, low, low, low, low,
                                        low, low, low, low, low, low, low, low, low, low};
  return {first(n), load(kBeyond + 16 - n)};
}

// Calls f(i, access) for i = 0, kLanes, ... < n.
template <class F>
DPT_SIMD void each_vector(size_t n, F f) {
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) f(i, Whole{});
  if (i < n) f(i, rest(n - i));
}

}  // namespace dpt::DPT_ISA
