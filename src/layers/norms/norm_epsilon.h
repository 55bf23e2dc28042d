// The range of a norm's `eps`, the layer's first key, which a plain number in the spec sets.
#pragma once

#include "spec/keys.h"

namespace dpt::layers {

// Users may write PyTorch's first argument, the number of channels, which is inferred here.
inline constexpr Range kNormEpsilon{
    .text =
        "must be at least 0 and below 1 (the number of channels is inferred, so do not write it)",
    .low = 0,
    .high = 1,
    .below_high = true};

}  // namespace dpt::layers
