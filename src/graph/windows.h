// Geometry of convolution and pooling windows along the extents of an image: i = 0 is the depth, i
// = 1 the height, i = 2 the width.
#pragma once

#include <algorithm>
#include <array>
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
  int64_t elements() const { return std::max<int64_t>(0, last - first); }
};

// {depth, height, width} of [N, C, ...] for ranks 3 to 5; missing dimensions are 1. For other
// ranks, the width is the number of elements of a channel.
inline Extents extents_of(const Shape& s) {
  if (s.rank() == 5) return {s[2], s[3], s[4]};
  if (s.rank() == 4) return {1, s[2], s[3]};
  return {1, 1, s.rank() > 2 ? s.tail(2).elements() : 1};
}

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

// One range of each extent.
using Box = std::array<Span1, 3>;
inline Box inside(const Window& w, const Extents& place, const Extents& in) {
  return {inside(w, 0, place[0], in[0]), inside(w, 1, place[1], in[1]),
          inside(w, 2, place[2], in[2])};
}
inline Box piece(const Extents& place, const Extents& in, const Extents& out) {
  return {piece(place[0], in[0], out[0]), piece(place[1], in[1], out[1]),
          piece(place[2], in[2], out[2])};
}
inline Box all_of(const Extents& e) { return {Span1{0, e[0]}, {0, e[1]}, {0, e[2]}}; }
inline int64_t elements_of(const Box& b) {
  return b[0].elements() * b[1].elements() * b[2].elements();
}

// Calls f(position) for the positions of a box, the last extent first, in steps of `step`.
template <class F>
void each_position(const Box& b, const Extents& step, F f) {
  for (int64_t d = b[0].first; d < b[0].last; d += step[0])
    for (int64_t h = b[1].first; h < b[1].last; h += step[1])
      for (int64_t w = b[2].first; w < b[2].last; w += step[2]) f(Extents{d, h, w});
}

// What avg_pool divides the sum of the window at output position `place` by. The mean of a window
// without elements is 0.
inline int64_t divisor_of(const Pool& s, const Extents& place, const Extents& in) {
  if (s.divisor_override != 0) return s.divisor_override;
  const int64_t here = elements_of(inside(s.window, place, in));
  if (here == 0 || !s.count_include_pad) return std::max<int64_t>(1, here);
  int64_t out = 1;
  for (size_t i = 0; i < 3; ++i) out *= with_padding(s.window, i, place[i], in[i]);
  return out;
}

// For each of `out` elements along extent `axis` of the padded x, the index of the element of x
// that it copies.
inline std::vector<int64_t> pad_sources(const Shape& x, int64_t out, const Pad& pad, size_t axis) {
  const int64_t in = extents_of(x)[axis];
  const int dim = x.rank() - 3 + static_cast<int>(axis);
  const int64_t before = dim < 2 ? 0 : pad.before[static_cast<size_t>(dim)];
  std::vector<int64_t> from;
  for (int64_t i = 0; i < out; ++i) from.push_back(formula::pad_source(pad.mode, i - before, in));
  return from;
}

// For each of `out` elements along extent `axis`, the index of the nearest among `in`.
inline std::vector<int64_t> nearest_sources(int64_t in, int64_t out, const Resize& s, size_t axis) {
  std::vector<int64_t> from;
  const auto ratio = formula::linear_ratio<float>(in, out, s.scale[axis], false);
  for (int64_t i = 0; i < out; ++i) from.push_back(formula::nearest_source(i, in, ratio, s.exact));
  return from;
}

}  // namespace dpt
