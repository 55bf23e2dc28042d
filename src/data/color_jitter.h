// Random changes of an image's colors, with the formulas of torchvision.transforms.v2.ColorJitter
// for float images.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "data/augment.h"

namespace dpt {

// The ranges from which factors are drawn; empty: the step is left out.
struct ColorJitter {
  struct Range {
    double low = 1, high = 1;
  };
  std::optional<Range> brightness, contrast, saturation, hue;
};

// The factors of one image, and the order in which they are applied: 0 brightness, 1 contrast, 2
// saturation, 3 hue.
struct JitterDraw {
  std::array<int, 4> order{0, 1, 2, 3};
  std::optional<double> brightness, contrast, saturation, hue;
};

// A function of seed, epoch and drawn sample. index: of the transform in the list.
JitterDraw draw_jitter(const ColorJitter& jitter, const AugmentSeed& seed, DrawnSample sample,
                       uint64_t index);

// Changes x[channels, pixels], whose values are in 0..1, in place. With one channel, saturation and
// hue change nothing. REQUIRES: 1 or 3 channels.
void jitter_colors(const JitterDraw& draw, int64_t channels, std::span<float> x);

}  // namespace dpt
