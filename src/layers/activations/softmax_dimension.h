// The dimension of softmax and log_softmax, by nn.Softmax's rules, including its implicit choice.
#pragma once

#include <optional>

#include "layers/dimension.h"

namespace dpt::layers {

// Without `dim` PyTorch uses dimension 0 for inputs of rank 1 or 3, and 1 for others. Dimension 0
// is the batch, so it is an error here.
inline int softmax_dimension(std::string_view layer, std::optional<int64_t> dim, const Shape& x) {
  if (dim) return sample_dimension(layer, "dim", *dim, x);
  if (x.rank() == 1 || x.rank() == 3)
    fail(Fault::spec,
         "{} of an input of {} needs 'dim': torch's default would be the batch dimension", layer,
         x.str());
  return 1;
}

}  // namespace dpt::layers
