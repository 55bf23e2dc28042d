// Dimension arguments of layers, which count as in PyTorch but must not be the batch dimension.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/fail.h"
#include "base/tensor.h"

namespace dpt::layers {

// Converts `dim`, which may be negative to count from the end, to a dimension counted from 0.
// Throws Error{spec} if x has no such dimension, or if it is the batch: layers must not mix
// samples.
inline int sample_dimension(std::string_view layer, std::string_view key, int64_t dim,
                            const Shape& x) {
  if (dim < -x.rank() || dim >= x.rank())
    fail(Fault::spec, "{}: {} is {}, but the input {} has extents {} to {}", layer, key, dim,
         x.str(), -x.rank(), x.rank() - 1);
  const int64_t from_front = dim < 0 ? dim + x.rank() : dim;
  if (from_front == 0)
    fail(Fault::spec, "{}: {} is {}, which is the batch of the input {}: it would mix samples",
         layer, key, dim, x.str());
  return static_cast<int>(from_front);
}

}  // namespace dpt::layers
