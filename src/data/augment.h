// Random changes of images: where their pixels come from, drawn anew for each sample and epoch.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "base/tensor.h"
#include "graph/philox.h"

namespace dpt {

// What random transforms are a function of, besides the sample's number in its set and the
// transform's place in the list. So they are the same in every mode, for any number of workers, and
// whatever batch a sample is in.
struct Turn {
  uint64_t seed = 0;
  uint64_t epoch = 0;  // from 0
};

// The numbers of one transform for one sample.
class Draw {
 public:
  Draw(const Turn& turn, uint64_t sample, size_t transform);
  double uniform() { return static_cast<double>(word()) * 0x1p-32; }  // [0, 1)
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  int64_t below(int64_t n) {  // 0 .. n - 1
    return static_cast<int64_t>(uint64_t{word()} * static_cast<uint64_t>(n) >> 32);
  }

 private:
  uint32_t word();
  philox::Key key_;
  uint64_t epoch_, sample_;
  uint32_t used_ = 0;
  philox::Words words_{};
};

struct Rect {  // of pixels; bottom and right are outside
  int64_t top = 0, left = 0, bottom = 0, right = 0;
};

// An image [C, H, W] seen through crops and flips, with patches over it. What is painted last lies
// on top; crops and flips move what was painted before.
class Frame {
 public:
  static constexpr size_t kMostPatches = 64;

  explicit Frame(const Shape& image);
  int64_t height() const { return height_; }
  int64_t width() const { return width_; }

  // Of each channel; must outlive the frame.
  using Colour = const float*;
  // The part of that size whose first pixel was (top, left), which may be outside: such pixels get
  // the colour.
  void crop(int64_t top, int64_t left, int64_t height, int64_t width, Colour outside);
  void flip();  // left is right
  void patch(const Rect& where, Colour colour);

  // Draws all channels to x[C, height(), width()]. `copy(from, count, channel, to)` converts
  // neighbouring pixels of the image, the first of them number `from`.
  template <class Copy>
  void draw(float* x, Copy copy) const;

 private:
  struct Patch {
    Rect rect;
    bool inside = true;  // else everything but the rectangle is painted
    Colour colour = nullptr;
  };
  void add(const Patch& patch);
  void paint(const Patch& patch, int64_t channel, float* x) const;

  int64_t channels_, image_height_, image_width_;
  int64_t height_, width_;
  // Row y is row y + top_ of the image; column x is x + left_, or left_ - x where it is flipped.
  int64_t top_ = 0, left_ = 0;
  bool flipped_ = false;
  std::array<Patch, kMostPatches> patches_;
  size_t count_ = 0;
};

template <class Copy>
void Frame::draw(float* x, Copy copy) const {
  // Columns that show the image: the others have been painted.
  const int64_t from = flipped_ ? left_ - image_width_ + 1 : -left_;
  const int64_t begin = std::clamp<int64_t>(from, 0, width_);
  const int64_t end = std::clamp<int64_t>(from + image_width_, begin, width_);
  for (int64_t c = 0; c < channels_; ++c, x += height_ * width_) {
    for (int64_t y = std::max<int64_t>(0, -top_); y < std::min(height_, image_height_ - top_);
         ++y) {
      if (begin == end) break;
      const int64_t first = flipped_ ? left_ - end + 1 : left_ + begin;
      float* const row = x + y * width_;
      copy(((c * image_height_) + y + top_) * image_width_ + first,
           static_cast<size_t>(end - begin), c, row + begin);
      if (flipped_) std::reverse(row + begin, row + end);
    }
    for (size_t p = 0; p < count_; ++p) paint(patches_[p], c, x);
  }
}

}  // namespace dpt
