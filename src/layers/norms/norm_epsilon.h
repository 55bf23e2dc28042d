// A norm's `eps`, the layer's first key, which a plain number in the spec sets.
#pragma once

#include "spec/keys.h"

namespace dpt::layers {

// Users may write PyTorch's first argument, the number of channels, which is inferred here.
inline void check_epsilon(double eps, const Owner& owner, Diagnostics& d) {
  if (owner.main_value && eps >= 1)
    d.error(owner.at("eps"),
            "'eps' must be at least 0 and below 1 (the number of channels is inferred, so do not "
            "write it)");
}

}  // namespace dpt::layers
