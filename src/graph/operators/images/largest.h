// The largest element of a box of an image, for pooling.
#pragma once

#include <cmath>
#include <limits>
#include <span>
#include <string_view>

#include "graph/operators/images/image.h"

namespace dpt::operators {

// Throws Error{spec} if indices of elements of a channel do not fit into i32.
inline void need_indexed(std::string_view op, const Shape& x) {
  if (x.tail(2).elements() > std::numeric_limits<int32_t>::max())
    fail(Fault::spec, "{}: the images of {} have more than 2^31 - 1 pixels", op, x.str());
}

template <class T>
struct Largest {
  T value;
  Extents position;
};

// The first of the largest elements; nan counts as the largest. Of an empty box, -inf and its
// first position.
template <class T>
Largest<T> largest(std::span<const T> x, const Image& image, int64_t n, int64_t c, const Box& box,
                   const Extents& step) {
  Largest<T> out{-std::numeric_limits<T>::infinity(), {box[0].first, box[1].first, box[2].first}};
  each_position(box, step, [&](const Extents& p) {
    if (const T v = x[image.at(n, c, p)]; v > out.value || std::isnan(v)) out = {v, p};
  });
  return out;
}

}  // namespace dpt::operators
