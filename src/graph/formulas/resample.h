// Where elements of padded and resized images come from, as in PyTorch.
#pragma once

#include <stdint.h>

#include "graph/formulas/formulas.h"

namespace dpt::formula {

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

enum class PadFrom { reflect, replicate, circular };

// The index of the element of x[0] ... x[n - 1] that a pad puts at index i, which is negative
// before x and at least n behind it. REQUIRES: reflect: -n < i < 2 n - 1; circular: -n <= i < 2 n.
DPT_FORMULA int64_t pad_source(PadFrom from, int64_t i, int64_t n) {
  if (i >= 0 && i < n) return i;
  if (from == PadFrom::replicate) return i < 0 ? 0 : n - 1;
  if (from == PadFrom::circular) return i < 0 ? i + n : i - n;
  return i < 0 ? -i : 2 * (n - 1) - i;
}

}  // namespace dpt::formula
