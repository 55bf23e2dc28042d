#include <algorithm>
#include <array>
#include <bit>

#include <fmt/format.h>

#include "data/readers/image_formats.h"

namespace dpt {
namespace {

constexpr size_t kFileHeader = 14;  // in front of the header whose size varies
constexpr uint64_t kBitfields = 3;

// The header's size: 12 (OS/2), or 40 and more (Windows); 0 if it is none of those that PIL reads.
size_t header_size(std::span<const std::byte> bytes) {
  constexpr size_t kSizes[] = {12, 40, 52, 56, 64, 108, 124};
  if (bytes.size() < kFileHeader + 4) return 0;
  const uint64_t size = little_endian_at(bytes, kFileHeader, 4);
  return std::ranges::find(kSizes, size) != std::end(kSizes) ? size : 0;
}

// A negative height stands for rows from top to bottom. PIL looks at its upper byte.
bool is_top_down(std::span<const std::byte> bytes, size_t header) {
  return header > 12 && bytes[25] == std::byte{0xff};
}

using Color = std::array<uint8_t, 3>;
using Masks = std::array<uint32_t, 3>;  // of the bits of red, green and blue

// What remains to be read once the headers are.
class Bmp {
 public:
  Bmp(std::span<const std::byte> bytes, const std::string& path)
      : bytes_(bytes), path_(path), header_(header_size(bytes)) {
    if (header_ == 0) damaged_image(path, "BMP", "its header has an unknown size");
    if (bytes.size() < kFileHeader + header_) too_short();
    const auto size = bmp_size(bytes);
    check_image_size(static_cast<uint64_t>(size->height), static_cast<uint64_t>(size->width),
                     bytes.size(), path, "BMP");
    height_ = static_cast<size_t>(size->height);
    width_ = static_cast<size_t>(size->width);
    const bool old = header_ == 12;
    bits_ = little_endian_at(bytes, old ? 24 : 28, 2);
    const uint64_t compression = old ? 0 : little_endian_at(bytes, 30, 4);
    end_ = kFileHeader + header_;  // of the headers
    check_bits(compression);
    if (bits_ >= 16) read_masks(compression == kBitfields);
    if (bits_ <= 8) read_palette(old ? 3 : 4, old ? 0 : little_endian_at(bytes, 46, 4));
  }

  Image pixels() const {
    // Rows are padded to 4 bytes. The last row in the file may lack its padding.
    const uint64_t row = (width_ * bits_ + 7) / 8, stride = (row + 3) / 4 * 4;
    const uint64_t needed = stride * (height_ - 1) + row;
    if (first_ > bytes_.size() || needed > bytes_.size() - first_) too_short();
    Image image = new_image(height_, width_);
    const bool top_down = is_top_down(bytes_, header_);
    for (size_t y = 0; y < height_; ++y) {
      const std::span<const std::byte> from =
          bytes_.subspan(first_ + stride * (top_down ? y : height_ - 1 - y), row);
      uint8_t* to = image.pixels.data() + y * width_ * 3;
      for (size_t x = 0; x < width_; ++x, to += 3)
        std::ranges::copy(bits_ <= 8 ? indexed(from, x) : direct(from, x), to);
    }
    return image;
  }

 private:
  [[noreturn]] void too_short() const { damaged_image(path_, "BMP", "the file ends too early"); }

  void check_bits(uint64_t compression) const {
    if (compression == 1 || compression == 2)
      unsupported_image(path_, "BMP", "with run-length compression");
    const bool whole = bits_ == 16 || bits_ == 24 || bits_ == 32;
    if (compression > kBitfields || (compression == kBitfields && !whole))
      unsupported_image(path_, "BMP", fmt::format("with compression {}", compression));
    if (bits_ != 1 && bits_ != 4 && bits_ != 8 && !whole)
      unsupported_image(path_, "BMP", fmt::format("with {} bits per pixel", bits_));
  }

  // Bitfields stand in the header, or behind a header of 40 bytes.
  void read_masks(bool bitfields) {
    first_ = little_endian_at(bytes_, 10, 4);
    const Masks usual = bits_ == 16 ? Masks{0x7c00, 0x3e0, 0x1f} : Masks{0xff0000, 0xff00, 0xff};
    masks_ = usual;
    if (bitfields) {
      if (header_ == 40) end_ += 12;
      if (bytes_.size() < end_) too_short();
      for (size_t i = 0; i < 3; ++i)
        masks_[i] = static_cast<uint32_t>(little_endian_at(bytes_, kFileHeader + 40 + 4 * i, 4));
      if (bits_ == 32 && masks_ == Masks{}) masks_ = usual;
      const bool bytewise = std::ranges::all_of(masks_, [](uint32_t mask) {
        return mask != 0 && std::countr_zero(mask) % 8 == 0 &&
               mask >> std::countr_zero(mask) == 0xff;
      });
      const bool known = bits_ == 16   ? masks_ == usual || masks_ == Masks{0xf800, 0x7e0, 0x1f}
                         : bits_ == 24 ? masks_ == usual
                                       : bytewise;
      if (!known) unsupported_image(path_, "BMP", "with unusual bit fields");
    }
    if (first_ == 0) first_ = end_;
  }

  // Blue, green, red, and with `entry` 4 a byte that is not used. PIL counts all `colors` for files
  // whose pixels would begin in the palette. Absent colors are black.
  void read_palette(size_t entry, uint64_t colors) {
    if (colors == 0) colors = uint64_t{1} << bits_;
    if (colors > 256) damaged_image(path_, "BMP", fmt::format("its palette has {} colors", colors));
    first_ = little_endian_at(bytes_, 10, 4);
    if (first_ == end_) first_ += entry * colors;
    for (size_t i = 0; i < colors && end_ + entry * (i + 1) <= bytes_.size(); ++i)
      for (size_t c = 0; c < 3; ++c)
        palette_[i][c] = std::to_integer<uint8_t>(bytes_[end_ + entry * i + 2 - c]);
    if (first_ == 0) first_ = end_ + entry * colors;
  }

  const Color& indexed(std::span<const std::byte> row, size_t x) const {
    const size_t per_byte = 8 / bits_, shift = (per_byte - 1 - x % per_byte) * bits_;
    return palette_[std::to_integer<size_t>(row[x / per_byte]) >> shift & ((1U << bits_) - 1)];
  }

  Color direct(std::span<const std::byte> row, size_t x) const {
    Color out{};
    const auto value = bits_ == 16 ? static_cast<uint32_t>(little_endian_at(row, 2 * x, 2)) : 0;
    for (size_t c = 0; c < 3; ++c) {
      const auto shift = static_cast<size_t>(std::countr_zero(masks_[c]));
      out[c] =
          bits_ == 16
              ? static_cast<uint8_t>(((value & masks_[c]) >> shift) * 255 / (masks_[c] >> shift))
              : std::to_integer<uint8_t>(row[x * bits_ / 8 + shift / 8]);
    }
    return out;
  }

  std::span<const std::byte> bytes_;
  const std::string& path_;
  size_t header_, end_ = 0, height_ = 0, width_ = 0;
  uint64_t first_ = 0;  // offset of the pixels
  uint64_t bits_ = 0;   // of a pixel
  std::array<Color, 256> palette_{};
  Masks masks_{};
};

}  // namespace

std::optional<ImageSize> bmp_size(std::span<const std::byte> bytes) {
  const size_t header = header_size(bytes);
  if (header == 0 || bytes.size() < 26) return std::nullopt;
  const auto number = [&](size_t at, size_t count) {
    return static_cast<int64_t>(little_endian_at(bytes, at, count));
  };
  if (header == 12) return ImageSize{.height = number(20, 2), .width = number(18, 2)};
  const int64_t height = number(22, 4);
  return ImageSize{.height = is_top_down(bytes, header) ? (int64_t{1} << 32) - height : height,
                   .width = number(18, 4)};
}

Image decode_bmp(std::span<const std::byte> bytes, const std::string& path) {
  return Bmp(bytes, path).pixels();
}

}  // namespace dpt
