// Dimensions as torch counts them, of which a layer may not touch the first: that is the batch.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/fail.h"
#include "base/tensor.h"

namespace dpt::layers {

// `dim` counted from 0, where negative ones count from the end. Throws Error{spec} where the input
// has no such extent, or where it is the batch, whose samples no layer may mix.
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
