#include "data/image_samples.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/fail.h"
#include "base/hash.h"
#include "base/machine.h"
#include "base/units.h"
#include "data/image_files.h"
#include "data/readers/bytes.h"
#include "data/readers/orientation.h"

namespace dpt {
namespace {

namespace fs = std::filesystem;

// Height and width after resizing.
ImageSize resized_to(const ImageReading& s, const ImageSize& image) {
  if (s.resize.empty()) return image;
  if (s.resize.size() == 2) return {s.resize[0], s.resize[1]};
  const int64_t size = s.resize[0];
  const auto longer = [&](int64_t a, int64_t b) {
    return static_cast<int64_t>(static_cast<double>(size * a) / static_cast<double>(b));
  };
  if (image.width <= image.height) return {longer(image.height, image.width), size};
  return {size, longer(image.width, image.height)};
}

Image decoded(const ImageReading& s, std::span<const std::byte> bytes, const std::string& path) {
  Image image = decode_image(bytes, path);
  return s.exif ? upright(std::move(image), exif_orientation(bytes)) : image;
}

// By the header of the file if it is near the beginning, as in most files.
ImageSize size_of_file(const ImageReading& s, const std::string& path) {
  constexpr uint64_t kNear = 4 * kKiB;
  const std::unique_ptr<ByteSource> source = open_bytes(path);
  if (!source->compressed() && !s.exif) {
    std::vector<std::byte> begin(std::min(kNear, source->most_bytes()));
    source->read(begin, "the image");
    if (const auto size = image_size(begin)) return *size;
  }
  const std::vector<std::byte> all = bytes_of_image(path);
  if (const auto size = image_size(all))
    return s.exif && exchanges_sides(exif_orientation(all)) ? ImageSize{size->width, size->height}
                                                            : *size;
  const Image image = decoded(s, all, path);  // throws, most likely
  return {image.height, image.width};
}

// "32 x 24", as width and height are usually written.
std::string text_of(const ImageSize& size) {
  return fmt::format("{} x {}", size.width, size.height);
}

// Limits the memory for resizing: a line of pixels, whose file has a few bytes, would need
// gigabytes once its shorter side has the wanted length. resized() first makes all rows in the
// new width; their number of pixels may be at most 16 million, the image's own, or four times the
// size in the spec, whichever is largest.
void check_cost(const ImageReading& s, const Image& image, const std::string& path) {
  const auto [height, width] = resized_to(s, {image.height, image.width});
  constexpr int64_t kAlways = int64_t{1} << 24;
  const int64_t most =
      std::max({kAlways, image.height * image.width, 4 * s.resize.front() * s.resize.back()});
  const int64_t pixels = std::max(height, image.height) * width;
  if (pixels > most)
    fail(Fault::data,
         "{} has {} x {} pixels; resizing it to {} x {} takes {} MiB: remove it, or crop it "
         "first",
         path, image.width, image.height, width, height, pixels * 3 / kMiB);
}

// Rows with something in common. Thread: any.
class Rows {
 public:
  void add(uint32_t row) {
    const std::lock_guard lock(mutex_);
    rows_.insert(row);
  }
  // How many there are, and the first.
  std::pair<size_t, uint32_t> count() const {
    const std::lock_guard lock(mutex_);
    return {rows_.size(), rows_.empty() ? 0 : *rows_.begin()};
  }

 private:
  mutable std::mutex mutex_;
  std::set<uint32_t> rows_;
};

class Reader : public SampleReader {
 public:
  Reader(const ImageReading& settings, std::vector<std::string> files, const ImageSize& size)
      : s_(settings), files_(std::move(files)), size_(size) {}

  void read(uint32_t row, std::span<std::byte> out) const override {
    const std::string& path = files_[row];
    const std::vector<std::byte> bytes = bytes_of_image(path);
    if (!s_.exif && exif_orientation(bytes) != 1) turned_.add(row);
    Image image = decoded(s_, bytes, path);
    const auto [height, width] = resized_to(s_, {image.height, image.width});
    if (s_.sized_by_files() && ImageSize{height, width} != size_)
      fail(Fault::data,
           "{} has {} pixels{}, but the samples of this run have {}; resize it, or train with "
           "height and width in `resize`, or with `crop`",
           path, text_of({height, width}), s_.resize.empty() ? "" : " after `resize`",
           text_of(size_));
    if (!s_.resize.empty()) {
      check_cost(s_, image, path);
      image = resized(image, height, width);
    }
    cut(image, reinterpret_cast<uint8_t*>(out.data()));
  }

  uint64_t fingerprint() const override {
    uint64_t out = 0;
    for (const std::string& file : files_) {
      const fs::path path(file);
      const std::string name = (path.parent_path().filename() / path.filename()).string();
      out = hash_of(std::as_bytes(std::span(name)), out);
    }
    return out;
  }

  std::string remarks() const override {
    const auto [turned, first] = turned_.count();
    if (turned == 0) return "";
    return fmt::format(
        "{} of the images that were read {} to be turned, as {} EXIF data says ({}), but {} read "
        "as stored, as by torchvision's ImageFolder; `exif: true` turns images",
        turned, turned == 1 ? "is" : "are", turned == 1 ? "its" : "their", files_[first],
        turned == 1 ? "is" : "are");
  }

 private:
  // Writes the image's center as [3, height, width], black outside of the image. As in CenterCrop,
  // padding puts the smaller half on the left, and cropping rounds halves to even.
  void cut(const Image& image, uint8_t* out) const {
    const auto first = [](int64_t whole, int64_t part) {
      return part > whole
                 ? -((part - whole) / 2)
                 : static_cast<int64_t>(std::nearbyint(static_cast<double>(whole - part) / 2));
    };
    const int64_t top = first(image.height, size_.height), left = first(image.width, size_.width);
    for (int64_t c = 0; c < 3; ++c)
      for (int64_t y = top; y < top + size_.height; ++y)
        for (int64_t x = left; x < left + size_.width; ++x) {
          const bool inside = y >= 0 && y < image.height && x >= 0 && x < image.width;
          *out++ = inside ? image.pixels[static_cast<size_t>((y * image.width + x) * 3 + c)]
                          : uint8_t{0};
        }
  }

  ImageReading s_;
  std::vector<std::string> files_;
  ImageSize size_;  // of samples
  mutable Rows turned_;
};

}  // namespace

void ImageReading::check(const ImageReading& r, const Owner& owner, Diagnostics& d) {
  for (const auto& [name, size] : {std::pair{"resize", &r.resize}, {"crop", &r.crop}})
    if (size->size() > 2)
      d.error(owner.at(name), fmt::format("'{}' must be one number or two", name));
}

ImageSize sample_size(const ImageReading& s, const std::vector<std::string>& files) {
  if (!s.sized_by_files()) {
    const std::vector<int64_t>& size = s.crop.empty() ? s.resize : s.crop;
    return {size.front(), size.back()};
  }
  const ImageSize first = resized_to(s, size_of_file(s, files[0]));
  for (const std::string& file : files)
    if (const ImageSize size = resized_to(s, size_of_file(s, file)); size != first)
      fail(Fault::data,
           "{} has {} pixels{}, but {} has {}: all samples must have one size. Give height and "
           "width "
           "in `resize`, or `crop`",
           files[0], text_of(first), s.resize.empty() ? "" : " after `resize`", file,
           text_of(size));
  return first;
}

std::vector<size_t> leave_out_damaged(const ImageReading& r, std::vector<std::string>& files,
                                      std::vector<std::string>& warnings) {
  std::vector<std::string> reasons(files.size());
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t i = next++; i < files.size(); i = next++) try {
        const Image image = decoded(r, bytes_of_image(files[i]), files[i]);
        if (!r.resize.empty()) check_cost(r, image, files[i]);
      } catch (const std::exception& e) {
        reasons[i] = e.what();
      }
  };
  std::vector<std::jthread> threads;
  for (size_t i = 1; i < usable_cores().size(); ++i) threads.emplace_back(work);
  work();
  threads.clear();
  std::vector<size_t> kept;
  for (size_t i = 0; i < files.size(); ++i) {
    if (!reasons[i].empty()) {
      warnings.push_back("left out: " + reasons[i]);
      continue;
    }
    if (kept.size() != i) files[kept.size()] = std::move(files[i]);
    kept.push_back(i);
  }
  files.resize(kept.size());
  return kept;
}

std::shared_ptr<const SampleReader> image_files_reader(const ImageReading& r,
                                                       std::vector<std::string> files,
                                                       const ImageSize& sample) {
  return std::make_shared<Reader>(r, std::move(files), sample);
}

}  // namespace dpt
