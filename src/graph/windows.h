// Geometry of convolution and pooling windows along one extent of an image: i = 0 is the height, i
// = 1 the width.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "base/checked.h"
#include "graph/attrs.h"
#include "graph/formulas/resample.h"

namespace dpt {

// The range [first, last).
struct Span1 {
  int64_t first, last;
};

// An extent plus its padding.
inline int64_t padded(const Window& w, size_t i, int64_t extent) {
  return (Checked(extent) + w.before[i] + w.behind[i]).value();
}

// Elements from the first to the last tap of a dilated window, both included.
inline int64_t covered(const Window& w, size_t i) {
  return (w.dilation[i] * (Checked(w.kernel[i]) - 1) + 1).value();
}

// The taps of the window at output position `place` that lie inside the image: [first, last) in
// steps of the dilation.
inline Span1 inside(const Window& w, size_t i, int64_t place, int64_t extent) {
  const int64_t begin = place * w.stride[i] - w.before[i];
  const int64_t missing = begin < 0 ? (-begin + w.dilation[i] - 1) / w.dilation[i] : 0;
  return {begin + missing * w.dilation[i], std::min(begin + covered(w, i), extent)};
}

// The divisor along one extent of an average with count_include_pad: padding counts, but not what
// lies beyond it, where ceil_mode windows may reach.
inline int64_t with_padding(const Window& w, size_t i, int64_t place, int64_t extent) {
  const int64_t begin = place * w.stride[i] - w.before[i];
  return std::min(begin + w.kernel[i], extent + w.behind[i]) - begin;
}

// The input range of output `place` in adaptive pooling from `in` to `out` elements. Ranges may
// overlap.
inline Span1 piece(int64_t place, int64_t in, int64_t out) {
  return {place * in / out, ((place + 1) * in + out - 1) / out};
}

// For each of `out` elements along extent `axis` (0: height), the index of the nearest among `in`.
inline std::vector<int64_t> nearest_sources(int64_t in, int64_t out, const Resize& s, size_t axis) {
  std::vector<int64_t> from;
  const auto ratio = formula::linear_ratio<float>(in, out, s.scale[axis], false);
  for (int64_t i = 0; i < out; ++i) from.push_back(formula::nearest_source(i, in, ratio, s.exact));
  return from;
}

}  // namespace dpt
