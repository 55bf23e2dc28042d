// Samples that are images, most likely, though not [C, H, W]: for hints and first specs.
#pragma once

#include <algorithm>

#include "base/tensor.h"

namespace dpt {

inline bool like_sides_of_image(int64_t height, int64_t width) {
  constexpr int64_t kSmallest = 8, kMostRatio = 2;
  const auto [shorter, longer] = std::minmax(height, width);
  return shorter >= kSmallest && longer <= kMostRatio * shorter;
}

// [H, W], of gray images.
inline bool like_gray_image(const Shape& sample) {
  return sample.rank() == 2 && like_sides_of_image(sample[0], sample[1]);
}

// [H, W, C], as in Keras.
inline bool like_channels_last(const Shape& sample) {
  return sample.rank() == 3 && (sample[2] == 1 || sample[2] == 3 || sample[2] == 4) &&
         like_sides_of_image(sample[0], sample[1]);
}

}  // namespace dpt
