#include "data/augment.h"

#include "base/error.h"

namespace dpt {
namespace {

// Keys of transforms are not those of dropout layers, which are counted from 0.
constexpr uint64_t kTransforms = uint64_t{1} << 63;

void fill(float* x, int64_t begin, int64_t end, float value) {
  if (begin < end) std::fill(x + begin, x + end, value);
}

}  // namespace

Draw::Draw(const Turn& turn, uint64_t sample, size_t transform)
    : key_(philox::layer_key(turn.seed, kTransforms + transform)),
      epoch_(turn.epoch),
      sample_(sample) {}

uint32_t Draw::word() {
  if (used_ % 4 == 0)
    words_ = philox::block(philox::sample_counter(epoch_, sample_, used_ / 4), key_);
  return words_.w[used_++ % 4];
}

Frame::Frame(const Shape& image)
    : channels_(image[0]),
      image_height_(image[1]),
      image_width_(image[2]),
      height_(image[1]),
      width_(image[2]) {}

void Frame::crop(int64_t top, int64_t left, int64_t height, int64_t width, Colour outside) {
  for (size_t p = 0; p < count_; ++p) {
    Rect& r = patches_[p].rect;
    r = {r.top - top, r.left - left, r.bottom - top, r.right - left};
  }
  if (top < 0 || left < 0 || top + height > height_ || left + width > width_)
    add({{-top, -left, height_ - top, width_ - left}, false, outside});
  top_ += top;
  left_ += flipped_ ? -left : left;
  height_ = height;
  width_ = width;
}

void Frame::flip() {
  for (size_t p = 0; p < count_; ++p) {
    Rect& r = patches_[p].rect;
    r = {r.top, width_ - r.right, r.bottom, width_ - r.left};
  }
  left_ += flipped_ ? -(width_ - 1) : width_ - 1;
  flipped_ = !flipped_;
}

void Frame::patch(const Rect& where, Colour colour) { add({where, true, colour}); }

void Frame::add(const Patch& patch) {
  require(count_ < kMostPatches, "a frame has room for what is painted on it");
  patches_[count_++] = patch;
}

void Frame::paint(const Patch& patch, int64_t channel, float* x) const {
  const float colour = patch.colour[channel];
  const int64_t top = std::clamp<int64_t>(patch.rect.top, 0, height_),
                bottom = std::clamp<int64_t>(patch.rect.bottom, top, height_),
                left = std::clamp<int64_t>(patch.rect.left, 0, width_),
                right = std::clamp<int64_t>(patch.rect.right, left, width_);
  if (!patch.inside) {
    fill(x, 0, top * width_, colour);
    fill(x, bottom * width_, height_ * width_, colour);
  }
  for (int64_t y = top; y < bottom; ++y) {
    float* const row = x + y * width_;
    if (patch.inside) {
      fill(row, left, right, colour);
    } else {
      fill(row, 0, left, colour);
      fill(row, right, width_, colour);
    }
  }
}

}  // namespace dpt
