// Random changes of images, drawn anew for each sample and epoch: the CPU implementation, which
// copies rows of pixels. The formulas are in graph/formulas/augment.h, shared with GPUs.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "data/drawn_samples.h"
#include "graph/formulas/augment.h"

namespace dpt {

// The seed and epoch of random transforms. A change depends only on these, the drawn sample
// (data/drawn_samples.h), and the transform's index in the list; so it is the same in every mode,
// for any number of workers, and in any batch.
struct AugmentSeed {
  uint64_t seed = 0;
  uint64_t epoch = 0;  // from 0
};

// The random numbers of one transform for a sample. index: of the transform in the list.
inline augment::Draw draw_of(const AugmentSeed& seed, DrawnSample sample, uint64_t index) {
  return augment::draw_of(seed.seed, seed.epoch, sample.row, index, sample.repeat);
}

// What a sample's image [height, width] becomes.
inline augment::Frame frame_of(const augment::Changes& changes, DrawnSample sample,
                               const AugmentSeed& seed, int64_t height, int64_t width) {
  augment::Frame out;
  augment::make_frame(changes, height, width, seed.seed, seed.epoch, sample.row, sample.repeat,
                      out);
  return out;
}

// Paints a patch over one channel x[height, width]; `colour` is the channel's. T: float or int32_t.
template <class T>
void paint(const augment::Frame& frame, const augment::Patch& patch, T colour, T* x);

// The positions along one dimension of a frame that show the image; patches cover the others.
// first, flipped: Frame::left and columns_flipped, for columns. image, size: extents.
struct Shown {
  Shown(int64_t first, bool flipped, int64_t image, int64_t size) {
    const int64_t from = flipped ? first - image + 1 : -first;
    begin = std::clamp<int64_t>(from, 0, size);
    end = std::clamp<int64_t>(from + image, begin, size);
  }
  int64_t begin, end;
};

// Draws all channels into x[C, height, width]. colours: [transforms, C]. copy(from, count, channel,
// to) converts `count` neighboring pixels of the source image [C, H, W], starting with pixel number
// `from`.
template <class T, class Copy>
void draw(const augment::Frame& f, const float* colours, int64_t channels, T* x, Copy copy) {
  const Shown rows(f.top, f.rows_flipped, f.image_height, f.height);
  const auto [begin, end] = Shown(f.left, f.columns_flipped, f.image_width, f.width);
  for (int64_t c = 0; c < channels; ++c, x += f.height * f.width) {
    for (int64_t y = rows.begin; y < rows.end; ++y) {
      if (begin == end) break;
      const int64_t source = f.rows_flipped ? f.top - y : f.top + y;
      const int64_t first = f.columns_flipped ? f.left - end + 1 : f.left + begin;
      T* const row = x + y * f.width;
      copy(((c * f.image_height) + source) * f.image_width + first,
           static_cast<size_t>(end - begin), c, row + begin);
      if (f.columns_flipped) std::reverse(row + begin, row + end);
    }
    for (int32_t p = 0; p < f.patches; ++p)
      paint(f, f.patch[p], static_cast<T>(colours[f.patch[p].colour * channels + c]), x);
  }
}

}  // namespace dpt
