#include "data/color_jitter.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/fail.h"

namespace dpt {
namespace {

// An image of three channels, or one.
class Colors {
 public:
  Colors(int64_t channels, std::span<float> x)
      : channels_(channels), pixels_(x.size() / static_cast<size_t>(channels)), x_(x) {}

  void scale(double factor) {
    const auto f = static_cast<float>(factor);
    for (float& v : x_) v = std::clamp(v * f, 0.0F, 1.0F);
  }
  // The mean is that of the gray image.
  void contrast(double factor) {
    double sum = 0;
    for (size_t i = 0; i < pixels_; ++i) sum += static_cast<double>(gray(i));
    const auto mean = static_cast<float>(sum / static_cast<double>(pixels_));
    for (float& v : x_) v = blended(v, mean, factor);
  }
  void saturation(double factor) {
    if (channels_ == 1) return;
    for (size_t i = 0; i < pixels_; ++i) {
      const float level = gray(i);
      for (size_t c = 0; c < 3; ++c) at(c, i) = blended(at(c, i), level, factor);
    }
  }
  void hue(double shift) {
    if (channels_ == 1) return;
    for (size_t i = 0; i < pixels_; ++i) shift_hue(at(0, i), at(1, i), at(2, i), shift);
  }

 private:
  float& at(size_t channel, size_t pixel) { return x_[channel * pixels_ + pixel]; }
  // ITU-R 601-2 luma, with torchvision's digits.
  float gray(size_t i) {
    return channels_ == 1 ? x_[i] : 0.2989F * at(0, i) + 0.587F * at(1, i) + 0.114F * at(2, i);
  }
  static float blended(float a, float b, double factor) {
    const auto f = static_cast<float>(factor), rest = static_cast<float>(1 - factor);
    return std::clamp(a * f + b * rest, 0.0F, 1.0F);
  }

  // To HSV, the hue in turns, and back.
  static void shift_hue(float& r, float& g, float& b, double shift) {
    const float high = std::max({r, g, b}), low = std::min({r, g, b}), range = high - low;
    const float saturation = range == 0 ? 0 : range / high, divisor = range == 0 ? 1 : range;
    const float from_r = (high - r) / divisor, from_g = (high - g) / divisor,
                from_b = (high - b) / divisor;
    float h = 0;
    if (high == r)
      h = from_b - from_g;
    else if (high == g)
      h = 2 + from_r - from_b;
    else
      h = 4 + from_g - from_r;
    h = h / 6 + 1 + static_cast<float>(shift);
    h -= std::floor(h);
    const float sixth = std::floor(h * 6), f = h * 6 - sixth;
    const auto unit = [](float v) { return std::clamp(v, 0.0F, 1.0F); };
    const float p = unit(high * (1 - saturation)), q = unit(high * (1 - saturation * f)),
                t = unit(high * (1 - saturation * (1 - f)));
    switch (static_cast<int>(sixth) % 6) {
      case 0:
        r = high, g = t, b = p;
        break;
      case 1:
        r = q, g = high, b = p;
        break;
      case 2:
        r = p, g = high, b = t;
        break;
      case 3:
        r = p, g = q, b = high;
        break;
      case 4:
        r = t, g = p, b = high;
        break;
      default:
        r = high, g = p, b = q;
        break;
    }
  }

  int64_t channels_;
  size_t pixels_;
  std::span<float> x_;
};

}  // namespace

JitterDraw draw_jitter(const ColorJitter& jitter, const AugmentSeed& seed, DrawnSample sample,
                       uint64_t index) {
  augment::Draw draw = draw_of(seed, sample, index);
  JitterDraw out;
  for (int64_t i = 3; i > 0; --i)
    std::swap(out.order[static_cast<size_t>(i)],
              out.order[static_cast<size_t>(augment::below(draw, i + 1))]);
  const auto factor = [&](const std::optional<ColorJitter::Range>& range) {
    return range ? std::optional(augment::uniform(draw, range->low, range->high)) : std::nullopt;
  };
  out.brightness = factor(jitter.brightness);
  out.contrast = factor(jitter.contrast);
  out.saturation = factor(jitter.saturation);
  out.hue = factor(jitter.hue);
  return out;
}

void jitter_colors(const JitterDraw& draw, int64_t channels, std::span<float> x) {
  require(channels == 1 || channels == 3, "an image with 1 or 3 channels");
  Colors colors(channels, x);
  for (const int step : draw.order) {
    if (step == 0 && draw.brightness) colors.scale(*draw.brightness);
    if (step == 1 && draw.contrast) colors.contrast(*draw.contrast);
    if (step == 2 && draw.saturation) colors.saturation(*draw.saturation);
    if (step == 3 && draw.hue) colors.hue(*draw.hue);
  }
}

}  // namespace dpt
