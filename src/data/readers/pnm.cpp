// PGM and PPM: gray and colored images of netpbm.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "data/readers/image_formats.h"

namespace dpt {
namespace {

// Numbers in text, between which white space and comments stand.
class Numbers {
 public:
  explicit Numbers(std::span<const std::byte> rest) : rest_(rest) {}

  // The next number, and skips the one byte of white space that ends it. Empty if there is none of
  // up to 10 digits. As in PIL, a comment does not end a number. The last number in a file may end
  // with the file only if `at_end`.
  std::optional<uint64_t> next(bool at_end) {
    uint64_t value = 0;
    int digits = 0;
    while (!rest_.empty()) {
      const auto c = std::to_integer<char>(rest_.front());
      rest_ = rest_.subspan(1);
      if (c == '#') {
        const auto end = std::ranges::find_if(
            rest_, [](std::byte b) { return b == std::byte{'\n'} || b == std::byte{'\r'}; });
        const auto comment = static_cast<size_t>(end - rest_.begin());
        rest_ = rest_.subspan(std::min(comment + 1, rest_.size()));
      } else if (c == ' ' || (c >= '\t' && c <= '\r')) {
        if (digits > 0) return value;
      } else if (c < '0' || c > '9' || ++digits > 10) {
        return std::nullopt;
      } else {
        value = value * 10 + static_cast<uint64_t>(c - '0');
      }
    }
    return digits > 0 && at_end ? std::optional(value) : std::nullopt;
  }
  std::span<const std::byte> rest() const { return rest_; }

 private:
  std::span<const std::byte> rest_;
};

// The samples 0 to `most` as PIL converts them to 8 bits: the largest becomes 255, but in gray
// images with samples above 255 it becomes 65535, which is then clipped to 255.
std::vector<uint8_t> scaled_samples(uint64_t most, bool gray) {
  std::vector<uint8_t> out;
  const double to = gray && most > 255 ? 65535 : 255;
  for (uint64_t v = 0; v <= most; ++v) {
    // Rounds halves to even, as Python does.
    const double scaled = std::nearbyint(static_cast<double>(v) / static_cast<double>(most) * to);
    out.push_back(static_cast<uint8_t>(std::min(scaled, 255.0)));
  }
  return out;
}

constexpr size_t kMagic = 3;  // 'P', a digit, white space

}  // namespace

std::optional<ImageSize> pnm_size(std::span<const std::byte> bytes) {
  if (bytes.size() < kMagic) return std::nullopt;
  Numbers numbers(bytes.subspan(kMagic));
  const auto width = numbers.next(false), height = numbers.next(false);
  if (!width || !height) return std::nullopt;
  return ImageSize{.height = static_cast<int64_t>(*height), .width = static_cast<int64_t>(*width)};
}

bool is_deep_pgm(std::span<const std::byte> bytes) {
  const auto kind = bytes.size() < kMagic ? '\0' : std::to_integer<char>(bytes[1]);
  if (kind != '2' && kind != '5') return false;
  Numbers numbers(bytes.subspan(kMagic));
  const bool sized = numbers.next(false) && numbers.next(false);
  return sized && numbers.next(false).value_or(0) > 255;
}

Image decode_pnm(std::span<const std::byte> bytes, const std::string& path) {
  const char kind = std::to_integer<char>(bytes[1]);
  if (kind == '1' || kind == '4') unsupported_image(path, "PBM", "of single bits");
  const bool plain = kind < '4', gray = kind == '2' || kind == '5';
  const std::string_view format = gray ? "PGM" : "PPM";
  Numbers numbers(bytes.subspan(kMagic));
  const auto width = numbers.next(false), height = numbers.next(false), most = numbers.next(false);
  if (!width || !height || !most || *most == 0 || *most > 65535)
    damaged_image(path, format,
                  "width, height and largest value (1 to 65535) must stand at its beginning");
  check_image_size(*height, *width, bytes.size(), path, format);
  const std::span<const std::byte> data = numbers.rest();
  const uint64_t count = *height * *width * (gray ? 1 : 3);
  const size_t size = *most > 255 ? 2 : 1;  // of a binary sample
  // In text, each number has a digit, and white space follows all but the last.
  if (plain ? data.size() + 1 < 2 * count : data.size() < count * size)
    damaged_image(path, format, "the file ends too early");
  const auto number = [&](uint64_t i) {
    const auto value = numbers.next(true);
    if (!value || *value > *most)
      damaged_image(path, format,
                    fmt::format("its sample {} is missing, or not a number up to {}", i, *most));
    return *value;
  };
  const auto binary = [&](uint64_t i) {
    const auto at = [&](uint64_t n) { return std::to_integer<uint64_t>(data[n]); };
    return std::min(size == 1 ? at(i) : at(2 * i) << 8 | at(2 * i + 1), *most);
  };
  Image image = new_image(*height, *width);
  const std::vector<uint8_t> scaled = scaled_samples(*most, gray);
  uint8_t* to = image.pixels.data();
  for (uint64_t i = 0; i < count; ++i)
    to = std::fill_n(to, gray ? 3 : 1, scaled[plain ? number(i) : binary(i)]);
  return image;
}

}  // namespace dpt
