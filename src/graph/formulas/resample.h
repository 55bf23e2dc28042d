// Where elements of padded and resized images come from, as in PyTorch.
#pragma once

#include <math.h>
#include <stdint.h>

#include "graph/formulas/formulas.h"

namespace dpt::formula {

// The element of x[0] ... x[in - 1] that mode nearest, or nearest-exact, puts at index i, in float
// as PyTorch's loops for AVX2, which fuse the product and the difference. ratio: see linear_ratio.
DPT_FORMULA int64_t nearest_source(int64_t i, int64_t in, float ratio, bool exact) {
  float at = static_cast<float>(i) * ratio;
  if (exact) {
    at = static_cast<float>((static_cast<double>(i) + 0.5) * static_cast<double>(ratio) - 0.5);
    at = (at < 0 ? 0 : at) + 0.5F;
  }
  const auto near = static_cast<int64_t>(::floorf(at));
  return near < in - 1 ? near : in - 1;
}

// Linear interpolation of an element between x[low] and x[high], with this weight of x[high].
template <class T>
struct Blend {
  int64_t low, high;
  T weight;
};

// Distance of source positions per output position (area_pixel_compute_scale in ATen/native/
// UpSample.h). scale: PyTorch's scale_factor; 0: none.
template <class T>
DPT_FORMULA T linear_ratio(int64_t in, int64_t out, double scale, bool align_corners) {
  if (align_corners) return out > 1 ? static_cast<T>(in - 1) / static_cast<T>(out - 1) : T(0);
  return scale > 0 ? static_cast<T>(1 / scale) : static_cast<T>(in) / static_cast<T>(out);
}

// The source of output element i (compute_source_index_and_lambda there). Without align_corners
// elements are squares whose centers lie at i + 1/2.
template <class T>
DPT_FORMULA Blend<T> linear_blend(int64_t i, int64_t in, int64_t out, T ratio, bool align_corners) {
  if (in == out) return {i, i, T(0)};
  T at = align_corners ? ratio * static_cast<T>(i) : ratio * (static_cast<T>(i) + T(0.5)) - T(0.5);
  if (at < T(0)) at = T(0);
  int64_t low = static_cast<int64_t>(at);
  if (low > in - 1) low = in - 1;
  T weight = at - static_cast<T>(low);
  if (weight > T(1)) weight = T(1);
  return {low, low < in - 1 ? low + 1 : low, weight};
}

// The elements of which an interpolated one is the sum, with these weights.
template <int kTaps>
struct Taps {
  int64_t at[kTaps];
  double weight[kTaps];
};

// Cubic convolution (Keys, 1981) with the factor of PyTorch, at a distance of at most 1, or of 1
// to 2.
DPT_FORMULA double cubic_near(double d) {
  constexpr double kFactor = -0.75;
  return ((kFactor + 2) * d - (kFactor + 3)) * d * d + 1;
}
DPT_FORMULA double cubic_far(double d) {
  constexpr double kFactor = -0.75;
  return ((kFactor * d - 5 * kFactor) * d + 8 * kFactor) * d - 4 * kFactor;
}

// Those of output element i by linear (kTaps: 2) or cubic (4) interpolation.
template <int kTaps, class T>
DPT_FORMULA Taps<kTaps> taps_of(int64_t i, int64_t in, int64_t out, T ratio, bool align_corners) {
  if constexpr (kTaps == 2) {
    const Blend<T> b = linear_blend(i, in, out, ratio, align_corners);
    const auto high = static_cast<double>(b.weight);
    return {{b.low, b.high}, {1 - high, high}};
  } else {
    const T at =
        align_corners ? ratio * static_cast<T>(i) : ratio * (static_cast<T>(i) + T(0.5)) - T(0.5);
    const auto below = static_cast<int64_t>(::floor(static_cast<double>(at)));
    const int64_t low = below < in - 1 ? below : in - 1;
    double d = static_cast<double>(at - static_cast<T>(low));
    if (d > 1) d = 1;
    Taps<kTaps> taps{{}, {cubic_far(1 + d), cubic_near(d), cubic_near(1 - d), cubic_far(2 - d)}};
    for (int k = 0; k < kTaps; ++k) {
      const int64_t to = low + k - 1;
      taps.at[k] = to < 0 ? 0 : to > in - 1 ? in - 1 : to;
    }
    return taps;
  }
}

// Where new elements of a pad come from.
enum class PadFrom : uint8_t { reflect, replicate, circular };

// The index of the element of x[0] ... x[n - 1] that a pad puts at index i, which is negative
// before x and at least n behind it. REQUIRES: reflect: -n < i < 2 n - 1; circular: -n <= i < 2 n.
DPT_FORMULA int64_t pad_source(PadFrom from, int64_t i, int64_t n) {
  if (i >= 0 && i < n) return i;
  if (from == PadFrom::replicate) return i < 0 ? 0 : n - 1;
  if (from == PadFrom::circular) return i < 0 ? i + n : i - n;
  return i < 0 ? -i : 2 * (n - 1) - i;
}

}  // namespace dpt::formula
