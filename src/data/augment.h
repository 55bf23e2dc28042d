// Images with random changes drawn anew for each sample and epoch: rows of pixels at a time, as
// CPUs do it. What is changed how is graph/formulas/augment.h's, which GPUs share.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "graph/formulas/augment.h"

namespace dpt {

// What random transforms are a function of, besides the sample's number in its set and the
// transform's place in the list. So they are the same in every mode, for any number of workers, and
// whatever batch a sample is in.
struct Turn {
  uint64_t seed = 0;
  uint64_t epoch = 0;  // from 0
};

// Paints a patch over a channel of a frame's size; colour: that channel's.
void paint(const augment::Frame& frame, const augment::Patch& patch, float colour, float* x);

// Draws all channels to x[C, height, width]. colours: [transforms, C].
// `copy(from, count, channel, to)` converts neighbouring pixels of the image [C, H, W], the first
// of them number `from`.
template <class Copy>
void draw(const augment::Frame& f, const float* colours, int64_t channels, float* x, Copy copy) {
  // Columns that show the image: the others will be painted.
  const int64_t from = f.flipped ? f.left - f.image_width + 1 : -f.left;
  const int64_t begin = std::clamp<int64_t>(from, 0, f.width);
  const int64_t end = std::clamp<int64_t>(from + f.image_width, begin, f.width);
  for (int64_t c = 0; c < channels; ++c, x += f.height * f.width) {
    const int64_t bottom = std::min(f.height, f.image_height - f.top);
    for (int64_t y = std::max<int64_t>(0, -f.top); y < bottom; ++y) {
      if (begin == end) break;
      const int64_t first = f.flipped ? f.left - end + 1 : f.left + begin;
      float* const row = x + y * f.width;
      copy(((c * f.image_height) + y + f.top) * f.image_width + first,
           static_cast<size_t>(end - begin), c, row + begin);
      if (f.flipped) std::reverse(row + begin, row + end);
    }
    for (int32_t p = 0; p < f.patches; ++p)
      paint(f, f.patch[p], colours[f.patch[p].colour * channels + c], x);
  }
}

}  // namespace dpt
