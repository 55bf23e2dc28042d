#include <cstring>

#include "data/readers/image.h"
#include "data/readers/image_formats.h"

namespace dpt {
namespace {

// The frame header (SOF0 .. SOF15 without DHT, JPG and DAC) is behind any number of segments, each
// of which begins with FF, its marker and its length (ITU-T T.81, B.1.1.4).
std::optional<ImageSize> jpeg_size(std::span<const std::byte> bytes) {
  constexpr size_t kFrame = 9;  // FF, marker, length, precision, height, width
  for (size_t at = 2; at + kFrame <= bytes.size();) {
    if (bytes[at] != std::byte{0xff}) return std::nullopt;
    const auto marker = std::to_integer<int>(bytes[at + 1]);
    if (marker == 0xff) {  // padding
      ++at;
      continue;
    }
    if (marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc)
      return ImageSize{.height = big_endian_at(bytes, at + 5, 2),
                       .width = big_endian_at(bytes, at + 7, 2)};
    if (marker == 0x01 || (marker >= 0xd0 && marker <= 0xd9)) {  // without a length
      at += 2;
      continue;
    }
    at += 2 + static_cast<size_t>(big_endian_at(bytes, at + 2, 2));
  }
  return std::nullopt;
}

// "RIFF", the file's size, "WEBP", and the first chunk: its name, its size and its data. It is a
// lossy image (RFC 6386, 9.1), a lossless one, or the header of an image with more chunks.
std::optional<ImageSize> webp_size(std::span<const std::byte> bytes) {
  constexpr size_t kName = 12, kData = 20, kEnough = 30;
  if (bytes.size() < kEnough) return std::nullopt;
  const auto number = [&](size_t at, size_t count) {
    return static_cast<int64_t>(little_endian_at(bytes, at, count));
  };
  const auto is = [&](size_t at, std::string_view text) {
    return std::memcmp(&bytes[at], text.data(), text.size()) == 0;
  };
  if (is(kName, "VP8X"))
    return ImageSize{.height = number(kData + 7, 3) + 1, .width = number(kData + 4, 3) + 1};
  if (is(kName, "VP8L") && is(kData, "\x2f"))
    return ImageSize{.height = (number(kData + 1, 4) >> 14 & 0x3fff) + 1,
                     .width = (number(kData + 1, 4) & 0x3fff) + 1};
  if (is(kName, "VP8 ") && is(kData + 3, "\x9d\x01\x2a"))
    return ImageSize{.height = number(kData + 8, 2) & 0x3fff,
                     .width = number(kData + 6, 2) & 0x3fff};
  return std::nullopt;
}

std::optional<ImageSize> png_size(std::span<const std::byte> bytes) {
  constexpr size_t kHeader = 24;  // the signature, and IHDR's length, name, width and height
  if (bytes.size() < kHeader) return std::nullopt;
  return ImageSize{.height = big_endian_at(bytes, 20, 4), .width = big_endian_at(bytes, 16, 4)};
}

}  // namespace

bool has_gray16(std::span<const std::byte> bytes) {
  constexpr size_t kDepth = 24, kColorType = 25;  // in IHDR
  if (image_format(bytes) == ImageFormat::pnm) return is_deep_pgm(bytes);
  return image_format(bytes) == ImageFormat::png && bytes.size() > kColorType &&
         bytes[kDepth] == std::byte{16} && bytes[kColorType] == std::byte{0};
}

std::optional<ImageSize> image_size(std::span<const std::byte> bytes) {
  std::optional<ImageSize> size;
  switch (image_format(bytes)) {
    case ImageFormat::jpeg:
      size = jpeg_size(bytes);
      break;
    case ImageFormat::png:
      size = png_size(bytes);
      break;
    case ImageFormat::bmp:
      size = bmp_size(bytes);
      break;
    case ImageFormat::pnm:
      size = pnm_size(bytes);
      break;
    case ImageFormat::webp:
      size = webp_size(bytes);
      break;
    case ImageFormat::tiff:
    case ImageFormat::other:
      break;
  }
  return size && plausible_size(*size) ? size : std::nullopt;
}

}  // namespace dpt
