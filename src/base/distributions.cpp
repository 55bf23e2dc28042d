#include "base/distributions.h"

#include <bit>
#include <cmath>
#include <cstddef>

// The loops are compiled a second time for CPUs with AVX2 and FMA, on which they take an eighth.
#ifdef __x86_64__
#define DPT_WITH_FMA [[gnu::target("avx2,fma")]]
#define DPT_INLINE [[gnu::always_inline]] inline
#else
#define DPT_INLINE inline
#endif

namespace dpt {
namespace {

// Note [fused products]: the last bit of a*b + c*d depends on which product is fused with the
// addition. Every fused operation below is therefore written as std::fma, and the others must not
// be contracted (-ffp-contract=off). std::fma rounds once on every machine.

// Natural logarithm for 0 < x <= 1: the polynomial of Cephes' logf (S. Moshier), which PyTorch's
// vectorized code uses.
DPT_INLINE float log_cephes(float x) {
  const auto bits = std::bit_cast<int32_t>(x < 0x1p-126F ? 0x1p-126F : x);
  const auto exponent = static_cast<float>((bits >> 23) - 126);
  const auto half = std::bit_cast<float>((bits & 0x007fffff) | 0x3f000000);  // in [0.5, 1)
  const bool low = half < 0.707106781186547524F;
  const float e = low ? exponent - 1 : exponent;
  const float m = low ? (half - 1) + half : half - 1;
  const float z = m * m;
  float y = 7.0376836292e-2F;
  y = std::fma(y, m, -1.1514610310e-1F);
  y = std::fma(y, m, 1.1676998740e-1F);
  y = std::fma(y, m, -1.2420140846e-1F);
  y = std::fma(y, m, 1.4249322787e-1F);
  y = std::fma(y, m, -1.6668057665e-1F);
  y = std::fma(y, m, 2.0000714765e-1F);
  y = std::fma(y, m, -2.4999993993e-1F);
  y = std::fma(y, m, 3.3333331174e-1F);
  y = y * m;
  const float t = e * -2.12194440e-4F;  // rounded product; the next one is fused
  y = std::fma(y, z, t);
  y = std::fma(-z, 0.5F, y);
  return std::fma(e, 0.693359375F, m + y);
}

// Sine and cosine for x >= 0, also from Cephes.
DPT_INLINE void sin_cos_cephes(float x, float& sine, float& cosine) {
  const int octant = (static_cast<int>(x * 1.27323954473516F) + 1) & ~1;  // rounded up to even
  const auto k = static_cast<float>(octant);
  x = std::fma(k, -0.78515625F, x);  // pi / 4 in three parts
  x = std::fma(k, -2.4187564849853515625e-4F, x);
  x = std::fma(k, -3.77489497744594108e-8F, x);
  const float z = x * x;
  float c = std::fma(std::fma(2.443315711809948e-5F, z, -1.388731625493765e-3F), z,
                     4.166664568298827e-2F) *
            z;
  const float half = z * 0.5F;  // rounded product; c * z is fused
  c = std::fma(c, z, -half) + 1;
  float s = std::fma(std::fma(-1.9515295891e-4F, z, 8.3321608736e-3F), z, -1.6666654611e-1F) * z;
  s = std::fma(s, x, x);
  const bool swapped = (octant & 2) != 0;
  const float first = swapped ? c : s, second = swapped ? s : c;
  sine = (octant & 4) != 0 ? -first : first;
  cosine = (~(octant - 2) & 4) != 0 ? -second : second;
}

DPT_INLINE void uniform_loop(std::span<const uint32_t> words, float low, float high, float* out) {
  const float width = high - low;
  for (size_t i = 0; i < words.size(); ++i) {
    // A float in [0, 1) from the low 24 bits.
    const float unit = static_cast<float>(static_cast<int32_t>(words[i] & 0xffffffU)) * 0x1p-24F;
    const float v = std::fma(unit, width, low);
    out[i] = v == high ? low : v;
  }
}

DPT_INLINE void normal_loop(std::span<float> values, float mean, float sd) {
  for (float* block = values.data(); block != values.data() + values.size(); block += 16)
    for (int j = 0; j < 8; ++j) {
      const float radius = std::sqrt(-2.0F * log_cephes(1 - block[j]));
      float s, c;
      sin_cos_cephes(6.283185307179586F * block[j + 8], s, c);
      block[j] = std::fma(radius * c, sd, mean);
      block[j + 8] = std::fma(radius * s, sd, mean);
    }
}

#ifdef DPT_WITH_FMA
DPT_WITH_FMA void uniform_fma(std::span<const uint32_t> words, float low, float high, float* out) {
  uniform_loop(words, low, high, out);
}

DPT_WITH_FMA void normal_fma(std::span<float> values, float mean, float sd) {
  normal_loop(values, mean, sd);
}

bool has_fma() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
#endif

}  // namespace

void uniform_values(std::span<const uint32_t> words, float low, float high, std::span<float> out) {
#ifdef DPT_WITH_FMA
  if (has_fma()) return uniform_fma(words, low, high, out.data());
#endif
  uniform_loop(words, low, high, out.data());
}

void normal_values(std::span<float> values, float mean, float sd) {
#ifdef DPT_WITH_FMA
  if (has_fma()) return normal_fma(values, mean, sd);
#endif
  normal_loop(values, mean, sd);
}

}  // namespace dpt
