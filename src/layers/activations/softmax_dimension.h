// Which extent softmax and log_softmax go over: nn.Softmax's rules, implicit choice included.
#pragma once

#include <optional>

#include "layers/dimension.h"

namespace dpt::layers {

// Without `dim` torch takes extent 1 of inputs with 2 or 4 extents, and the batch of those with 3,
// which is an error here.
inline int softmax_dimension(std::string_view layer, std::optional<int64_t> dim, const Shape& x) {
  if (dim) return sample_dimension(layer, "dim", *dim, x);
  if (x.rank() == 1 || x.rank() == 3)
    fail(Fault::spec, "{} of an input of {} needs 'dim': what torch takes by itself is the batch",
         layer, x.str());
  return 1;
}

}  // namespace dpt::layers
