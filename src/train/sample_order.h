// The order of a rank's samples in an epoch.
#pragma once

#include <cstdint>

#include "data/sampler.h"
#include "train/trainer.h"

namespace dpt {

// The order of the rank's samples in an epoch (from 0), as PyTorch's samplers draw it; advances the
// rank's generator. REQUIRES: one worker of each rank calls it, for one epoch after the other.
Order make_order(RankState& rank, int64_t epoch);

}  // namespace dpt
