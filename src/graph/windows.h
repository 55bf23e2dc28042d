// Where the windows of convolutions and pooling lie along one extent of an image: extent 0 is the
// height, 1 the width.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/checked.h"
#include "graph/attrs.h"

namespace dpt {

// From first to below last.
struct Span1 {
  int64_t first, last;
};

// An extent of an image together with its padding.
inline int64_t padded(const Window& w, size_t i, int64_t extent) {
  return (Checked(extent) + w.before[i] + w.behind[i]).value();
}

// What a window covers with its dilation.
inline int64_t covered(const Window& w, size_t i) {
  return (w.dilation[i] * (Checked(w.kernel[i]) - 1) + 1).value();
}

// The elements of one place of a window, in steps of the dilation, all of them inside.
inline Span1 inside(const Window& w, size_t i, int64_t place, int64_t extent) {
  const int64_t begin = place * w.stride[i] - w.before[i];
  const int64_t missing = begin < 0 ? (-begin + w.dilation[i] - 1) / w.dilation[i] : 0;
  return {begin + missing * w.dilation[i], std::min(begin + covered(w, i), extent)};
}

// How many elements a mean with count_include_pad counts: with padding, but not beyond it, where
// ceil_mode may go.
inline int64_t with_padding(const Window& w, size_t i, int64_t place, int64_t extent) {
  const int64_t begin = place * w.stride[i] - w.before[i];
  return std::min(begin + w.kernel[i], extent + w.behind[i]) - begin;
}

// Piece number `place` of adaptive pooling from `in` elements to `out`; pieces may overlap.
inline Span1 piece(int64_t place, int64_t in, int64_t out) {
  return {place * in / out, ((place + 1) * in + out - 1) / out};
}

}  // namespace dpt
