// A picture of some samples, for people who want to see what a net is trained on.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/batch_loader.h"

namespace dpt {

struct ContactSheet {
  int64_t height = 0, width = 0;
  std::vector<uint8_t> pixels;  // [height, width, 3]: red, green, blue
};

// A grid of samples after all transforms, with a label below each. Values from 0 to 1,
// or from 0 to 255, are shown as they are if the largest is at least half of that; others are
// scaled so that the smallest of all is black and the largest white. Small images are enlarged,
// large ones reduced. Throws Error{spec} if the samples are no images [H, W], [1, H, W] or [3, H,
// W], and what the loader throws. REQUIRES: as many labels as samples, not 0.
ContactSheet contact_sheet(const BatchLoader& loader, DrawnSamples samples,
                           std::span<const std::string> labels, const AugmentSeed& augment_seed);

}  // namespace dpt
