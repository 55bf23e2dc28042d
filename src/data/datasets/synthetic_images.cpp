#include <algorithm>
#include <array>
#include <bit>

#include "base/units.h"
#include "data/tables.h"

namespace dpt::datasets {
namespace {

// Generated images u8 [N, C, H, W] in the format of Fashion-MNIST, which need no files. Each class
// has a glyph of four round blobs; a sample is its class's glyph, shifted by up to two pixels and
// dimmed, plus noise. The bytes are the same on every machine, since only integer and plain IEEE
// arithmetic is used. Large data sets, and many glyphs, are painted on demand.
struct Images {
  static constexpr Usage kUsage{
      "",
      "dataset: synthetic_images\n"
      "dataset: {synthetic_images: {samples: 1000, classes: 10, shape: [3, 32, 32], seed: 0,\n"
      "    test_samples: 100}}"};

  int64_t samples = 60000, classes = 10, seed = 0, test_samples = 10000;
  std::vector<int64_t> shape{1, 28, 28};
  static KeyTable<Images> keys() {
    return KeyTable<Images>()
        .optional("samples", &Images::samples, "number of training samples", kSamples)
        .optional("classes", &Images::classes, "number of classes, one glyph each",
                  Range{.text = "must be between 1 and 10000", .low = 1, .high = 10000})
        .optional("shape", &Images::shape, "[channels, height, width]",
                  Range{.text = "must be between 1 and 1024", .low = 1, .high = 1024})
        .optional("seed", &Images::seed, "seed of the glyphs and samples")
        .optional("test_samples", &Images::test_samples, "number of test samples", kSamples);
  }
  static void check(const Images& c, const Owner& owner, Diagnostics& d) {
    if (c.shape.size() != 3)
      d.error(owner.at("shape"), "'shape' must be [channels, height, width]");
  }
};

constexpr size_t kShift = 2;             // pixels at most, each way
constexpr size_t kMostKept = 64 * kMiB;  // bytes of samples, and of glyphs

// splitmix64 (Steele, Lea and Flood): number n of the stream `key` is mix(key + n * kGolden).
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
        classes_(static_cast<uint64_t>(settings.classes)),
        seed_(mix(static_cast<uint64_t>(settings.seed))) {
    if (classes_ * features() <= kMostKept)
      for (uint64_t c = 0; c < classes_; ++c) glyphs_.push_back(glyph(c));
  }

  size_t features() const { return channels_ * height_ * width_; }

  // The class of sample number `n` of a split.
  int32_t label(uint64_t split, uint64_t n) const {
    return static_cast<int32_t>((key(split, n) & 0xffffffffU) % classes_);
  }

  void paint(uint64_t split, uint64_t n, uint8_t* to) const {
    const uint64_t key = this->key(split, n);
    const auto of = static_cast<uint64_t>(label(split, n));
    const std::vector<uint8_t> made = glyphs_.empty() ? glyph(of) : std::vector<uint8_t>();
    const std::vector<uint8_t>& glyph = glyphs_.empty() ? made : glyphs_[of];
    const size_t dy = (key >> 32) % (2 * kShift + 1), dx = (key >> 40) % (2 * kShift + 1);
    const int contrast = 128 + static_cast<int>(key >> 57);  // divided by 256
    std::vector<uint64_t> words(features() / 8 + 1);
    for (size_t i = 0; i < words.size(); ++i) words[i] = mix(key + (i + 1) * kGolden);
    const auto* noise = reinterpret_cast<const uint8_t*>(words.data());
    for (size_t c = 0; c < channels_; ++c)
      for (size_t y = 0; y < height_; ++y, to += width_, noise += width_) {
        const uint8_t* from = &glyph[((c * padded(height_)) + y + dy) * padded(width_) + dx];
        for (size_t x = 0; x < width_; ++x)
          to[x] = static_cast<uint8_t>(
              std::clamp((from[x] * contrast >> 8) + (noise[x] >> 2) - 32, 0, 255));
      }
  }

 private:
  uint64_t key(uint64_t split, uint64_t n) const {
    return mix(mix(seed_ + split + 1) + n * kGolden);
  }
  static size_t padded(size_t extent) { return extent + 2 * kShift; }

  // Paints a class's glyph [C, H + 4, W + 4] with a dark border.
  std::vector<uint8_t> glyph(uint64_t label) const {
    std::vector<uint8_t> out(channels_ * padded(height_) * padded(width_));
    uint64_t key = mix(seed_ + kGolden * (label + 1));
    const auto unit = [&key] { return static_cast<double>(mix(key += kGolden) >> 11) * 0x1p-53; };
    const auto h = static_cast<double>(height_), w = static_cast<double>(width_);
    for (size_t c = 0; c < channels_; ++c)
      for (int blob = 0; blob < 4; ++blob) {
        const double cy = h * (0.15 + 0.7 * unit()), cx = w * (0.15 + 0.7 * unit());
        const double radius = std::max(h, w) * (0.12 + 0.13 * unit()), bright = 160 + 95 * unit();
        // Only the square around the blob is visited.
        const auto from = [radius](double middle) {
          return static_cast<size_t>(std::max(0.0, middle - radius));
        };
        const auto to = [radius](double middle, size_t end) {
          return std::min(end, static_cast<size_t>(middle + radius) + 1);
        };
        for (size_t y = from(cy); y < to(cy, height_); ++y)
          for (size_t x = from(cx); x < to(cx, width_); ++x) {
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
  uint64_t classes_, seed_;
  std::vector<std::vector<uint8_t>> glyphs_;  // empty: painted on demand
};

class Reader : public SampleReader {
 public:
  Reader(std::shared_ptr<const Painter> painter, uint64_t split)
      : painter_(std::move(painter)), split_(split) {}
  void read(uint32_t row, std::span<std::byte> out) const override {
    painter_->paint(split_, row, reinterpret_cast<uint8_t*>(out.data()));
  }

 private:
  std::shared_ptr<const Painter> painter_;
  uint64_t split_;
};

static_assert(std::endian::native == std::endian::little, "noise is taken byte by byte");

Dataset load(const std::any& settings, const LoadQuery& query) {
  const auto& s = std::any_cast<const Images&>(settings);
  const int64_t samples = query.split == Split::train ? s.samples : s.test_samples;
  const uint64_t split = query.split == Split::train ? 0 : 1;
  const TensorDesc desc{DType::u8, {samples, s.shape[0], s.shape[1], s.shape[2]}};
  const auto bytes = static_cast<size_t>(desc.shape.tail(1).elements());
  const bool made = !query.sizes_only, kept = desc.bytes() <= kMostKept;
  const std::shared_ptr<const Painter> painter =
      made ? std::make_shared<const Painter>(s) : nullptr;
  const auto reader = std::make_shared<Reader>(painter, split);
  NewTable targets({DType::i32, {samples}});
  uint64_t n = 0;
  if (made)
    for (int32_t& target : targets.as<int32_t>()) target = painter->label(split, n++);
  Dataset d;
  d.made = made;
  d.inputs = {.desc = desc};
  if (kept) {
    NewTable inputs(desc);
    for (n = 0; made && n < static_cast<uint64_t>(samples); ++n)
      reader->read(static_cast<uint32_t>(n), {inputs.data.get() + n * bytes, bytes});
    d.inputs = std::move(inputs).done();
  } else {
    d.reader = reader;
  }
  d.targets = std::move(targets).done();
  d.classes = s.classes;
  d.description = describe("synthetic_images", d, "");
  return d;
}

}  // namespace

DatasetType synthetic_images() {
  DatasetType t{registry_entry<Images>(
      "synthetic_images",
      "Generated images of glyphs in the format of Fashion-MNIST, easy to learn.")};
  t.load = load;
  return t;
}

}  // namespace dpt::datasets
