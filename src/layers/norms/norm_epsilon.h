// The limits of a norm's `eps`, which is also the value that a bare number means.
#pragma once

#include "spec/keys.h"

namespace dpt::layers {

// Users of torch write the number of channels there, which is inferred here.
inline constexpr Range kNormEpsilon{
    "must be at least 0 and below 1 (the number of channels is inferred, so do not write it)", 0, 1,
    false, true};

}  // namespace dpt::layers
