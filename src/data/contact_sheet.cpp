#include "data/contact_sheet.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/fail.h"
#include "data/small_font.h"

namespace dpt {
namespace {

constexpr int64_t kSmallest = 64, kLargest = 160;  // pixels of the longer side of an image shown
constexpr int64_t kGap = 6, kTextScale = 2;
constexpr uint8_t kPaper = 255, kInk = 0;

struct Scaling {
  float low = 0, high = 1;
  uint8_t operator()(float x) const {
    if (!std::isfinite(x)) return 0;
    const float unit = high > low ? (x - low) / (high - low) : 0;
    return static_cast<uint8_t>(std::lround(std::clamp(unit, 0.0F, 1.0F) * 255));
  }
};

Scaling scaling_of(std::span<const float> values) {
  float low = std::numeric_limits<float>::infinity(), high = -low;
  for (const float v : values)
    if (std::isfinite(v)) low = std::min(low, v), high = std::max(high, v);
  // A largest value far below white tells of other units: then nothing would be seen.
  for (const float white : {1.0F, 255.0F})
    if (low >= 0 && high <= white && high >= white / 2) return {0, white};
  return {low, high};
}

// Channels, height and width of a sample.
Shape image_of(const Shape& sample) {
  if (sample.rank() == 2) return {1, sample[0], sample[1]};
  if (sample.rank() == 3 && (sample[0] == 1 || sample[0] == 3)) return sample;
  fail(Fault::spec,
       "a sheet shows images [height, width], [1, height, width] or [3, height, width], but the "
       "samples are {}",
       sample.str());
}

class Sheet {
 public:
  Sheet(const Shape& image, int64_t count)
      : image_(image),
        columns_(static_cast<int64_t>(std::ceil(std::sqrt(static_cast<double>(count))))) {
    const int64_t side = std::max(image[1], image[2]);
    if (side < kSmallest) enlarge_ = (kSmallest + side - 1) / side;
    if (side > kLargest) reduce_ = (side + kLargest - 1) / kLargest;
    height_ = shown(image[1]);
    width_ = shown(image[2]);
    const int64_t rows = (count + columns_ - 1) / columns_;
    out_.width = kGap + columns_ * (width_ + kGap);
    out_.height = kGap + rows * cell_height();
    out_.pixels.assign(static_cast<size_t>(out_.height * out_.width * 3), kPaper);
  }

  void add(int64_t index, const float* x, const Scaling& scaling, std::string_view label) {
    const int64_t top = kGap + index / columns_ * cell_height(),
                  left = kGap + index % columns_ * (width_ + kGap);
    for (int64_t c = 0; c < 3; ++c)
      for (int64_t y = 0; y < height_; ++y)
        for (int64_t i = 0; i < width_; ++i)
          at(top + y, left + i, c) = scaling(pixel(x, image_[0] == 1 ? 0 : c, y, i));
    write(top + height_ + kTextScale, left, label);
  }

  ContactSheet done() && { return std::move(out_); }

 private:
  int64_t cell_height() const { return height_ + kTextScale * (kGlyphHeight + 1) + kGap; }
  int64_t shown(int64_t extent) const { return std::max<int64_t>(1, extent * enlarge_ / reduce_); }
  uint8_t& at(int64_t y, int64_t x, int64_t c) {
    return out_.pixels[static_cast<size_t>((y * out_.width + x) * 3 + c)];
  }

  // A pixel of the enlarged image, or the mean of a square.
  float pixel(const float* x, int64_t channel, int64_t row, int64_t column) const {
    const float* const plane = x + channel * image_[1] * image_[2];
    if (reduce_ == 1) return plane[row / enlarge_ * image_[2] + column / enlarge_];
    float sum = 0;
    for (int64_t i = 0; i < reduce_; ++i)
      for (int64_t j = 0; j < reduce_; ++j)
        sum += plane[std::min(row * reduce_ + i, image_[1] - 1) * image_[2] +
                     std::min(column * reduce_ + j, image_[2] - 1)];
    return sum / static_cast<float>(reduce_ * reduce_);
  }

  // As much of the text as has room below an image.
  void write(int64_t top, int64_t left, std::string_view label) {
    const std::string drawn = drawable(label);
    std::string_view text = drawn;
    while (text_pixels(text) * kTextScale > width_) text.remove_suffix(1);
    for (size_t i = 0; i < text.size(); ++i)
      for (int64_t y = 0; y < kGlyphHeight * kTextScale; ++y)
        for (int64_t x = 0; x < kGlyphWidth * kTextScale; ++x)
          if (glyph_pixel(text[i], x / kTextScale, y / kTextScale))
            for (int64_t c = 0; c < 3; ++c)
              at(top + y, left + static_cast<int64_t>(i) * (kGlyphWidth + 1) * kTextScale + x, c) =
                  kInk;
  }

  Shape image_;
  int64_t columns_, enlarge_ = 1, reduce_ = 1, height_ = 0, width_ = 0;
  ContactSheet out_;
};

}  // namespace

ContactSheet contact_sheet(const BatchLoader& loader, DrawnSamples samples,
                           std::span<const std::string> labels, const AugmentSeed& augment_seed) {
  require(samples.size() > 0 && samples.size() == labels.size(), "a label for each sample");
  const Shape sample = loader.input().shape;
  const Shape image = image_of(sample);
  if (loader.input().dtype != DType::f32)
    fail(Fault::spec, "a sheet shows images, but the samples are tokens {}", sample.str());
  const auto features = static_cast<size_t>(sample.elements());
  std::vector<float> all(samples.size() * features);
  loader.inputs(samples, all.data(), augment_seed);
  const Scaling scaling = scaling_of(all);
  Sheet sheet(image, static_cast<int64_t>(samples.size()));
  for (size_t i = 0; i < samples.size(); ++i)
    sheet.add(static_cast<int64_t>(i), &all[i * features], scaling, labels[i]);
  return std::move(sheet).done();
}

}  // namespace dpt
