#include <algorithm>
#include <array>
#include <bit>

#include "data/tables.h"

namespace dpt::datasets {
namespace {

// synthetic_images: u8 [N, C, H, W] in the format of Fashion-MNIST, where no file is at hand. Each
// class has a glyph of four round blobs; a sample is its class's glyph, shifted by up to two
// pixels, dimmed, with noise. Integer and plain IEEE arithmetic only: the same bytes on every
// machine.
struct Images {
  int64_t samples = 60000, classes = 10, seed = 0, test_samples = 10000;
  std::vector<int64_t> shape{1, 28, 28};
  static KeyTable<Images> keys() {
    return KeyTable<Images>()
        .optional("samples", &Images::samples, "how many to train on", kPositive)
        .optional(
            "classes", &Images::classes, "how many glyphs",
            {"must be between 1 and 10000", [](const int64_t& v) { return v >= 1 && v <= 10000; }})
        .optional(
            "shape", &Images::shape, "channels, height, width",
            {"must be between 1 and 1024", [](const int64_t& v) { return v >= 1 && v <= 1024; }})
        .optional("seed", &Images::seed, "decides the glyphs and the samples")
        .optional("test_samples", &Images::test_samples, "how many to evaluate on", kPositive);
  }
  static void check(const Images& c, const Owner& owner, Diagnostics& d) {
    if (c.shape.size() != 3)
      d.error(owner.at("shape"), "'shape' must be [channels, height, width]");
  }
};

constexpr size_t kShift = 2;  // pixels at most, each way

// Steele, Lea and Flood's splitmix64: the n-th number of the stream `key` is mix(key + n *
// kGolden).
constexpr uint64_t kGolden = 0x9e3779b97f4a7c15;
uint64_t mix(uint64_t z) {
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

class Painter {
 public:
  explicit Painter(const Images& settings)
      : channels_(static_cast<size_t>(settings.shape[0])),
        height_(static_cast<size_t>(settings.shape[1])),
        width_(static_cast<size_t>(settings.shape[2])),
        seed_(mix(static_cast<uint64_t>(settings.seed))) {
    for (int64_t c = 0; c < settings.classes; ++c)
      glyphs_.push_back(glyph(static_cast<uint64_t>(c)));
    noise_.resize(features() / 8 + 1);
  }

  size_t features() const { return channels_ * height_ * width_; }

  // Paints sample number `n` of a split and returns its class.
  int32_t paint(uint64_t split, uint64_t n, uint8_t* to) {
    const uint64_t key = mix(mix(seed_ + split + 1) + n * kGolden);
    const uint64_t label = (key & 0xffffffffU) % glyphs_.size();
    const size_t dy = (key >> 32) % (2 * kShift + 1), dx = (key >> 40) % (2 * kShift + 1);
    const int contrast = 128 + static_cast<int>(key >> 57);  // of 256
    for (size_t i = 0; i < noise_.size(); ++i) noise_[i] = mix(key + (i + 1) * kGolden);
    const auto* noise = reinterpret_cast<const uint8_t*>(noise_.data());
    for (size_t c = 0; c < channels_; ++c)
      for (size_t y = 0; y < height_; ++y, to += width_, noise += width_) {
        const uint8_t* from =
            &glyphs_[label][((c * padded(height_)) + y + dy) * padded(width_) + dx];
        for (size_t x = 0; x < width_; ++x)
          to[x] = static_cast<uint8_t>(
              std::clamp((from[x] * contrast >> 8) + (noise[x] >> 2) - 32, 0, 255));
      }
    return static_cast<int32_t>(label);
  }

 private:
  static size_t padded(size_t extent) { return extent + 2 * kShift; }

  // [C, H + 4, W + 4], a dark border all around.
  std::vector<uint8_t> glyph(uint64_t label) const {
    std::vector<uint8_t> out(channels_ * padded(height_) * padded(width_));
    uint64_t key = mix(seed_ + kGolden * (label + 1));
    const auto unit = [&key] { return static_cast<double>(mix(key += kGolden) >> 11) * 0x1p-53; };
    const auto h = static_cast<double>(height_), w = static_cast<double>(width_);
    for (size_t c = 0; c < channels_; ++c)
      for (int blob = 0; blob < 4; ++blob) {
        const double cy = h * (0.15 + 0.7 * unit()), cx = w * (0.15 + 0.7 * unit());
        const double radius = std::max(h, w) * (0.12 + 0.13 * unit()), bright = 160 + 95 * unit();
        for (size_t y = 0; y < height_; ++y)
          for (size_t x = 0; x < width_; ++x) {
            const double ry = static_cast<double>(y) + 0.5 - cy,
                         rx = static_cast<double>(x) + 0.5 - cx;
            const double fall = std::max(0.0, 1 - (ry * ry + rx * rx) / (radius * radius));
            uint8_t& pixel = out[(c * padded(height_) + y + kShift) * padded(width_) + x + kShift];
            pixel = static_cast<uint8_t>(std::min(255.0, pixel + bright * fall * fall));
          }
      }
    return out;
  }

  size_t channels_, height_, width_;
  uint64_t seed_;
  std::vector<std::vector<uint8_t>> glyphs_;
  std::vector<uint64_t> noise_;
};

static_assert(std::endian::native == std::endian::little, "noise is taken byte by byte");

Dataset load(const std::any& settings, const LoadQuery& query) {
  const auto& s = std::any_cast<const Images&>(settings);
  const int64_t samples = query.split == Split::train ? s.samples : s.test_samples;
  NewTable inputs({DType::u8, {samples, s.shape[0], s.shape[1], s.shape[2]}}),
      targets({DType::i32, {samples}});
  Painter painter(s);
  uint8_t* pixels = inputs.as<uint8_t>().data();
  uint64_t n = 0;
  for (int32_t& target : targets.as<int32_t>()) {
    target = painter.paint(query.split == Split::train ? 0 : 1, n++, pixels);
    pixels += painter.features();
  }
  Dataset d;
  d.inputs = std::move(inputs).done();
  d.targets = std::move(targets).done();
  d.classes = s.classes;
  d.description = describe("synthetic_images", d, "");
  return d;
}

}  // namespace

DatasetType synthetic_images() {
  return {nameable<Images>("synthetic_images",
                           "Made-up images in Fashion-MNIST's format, easy to learn."),
          load, true, nullptr};
}

}  // namespace dpt::datasets
