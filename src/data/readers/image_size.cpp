#include <cstring>

#include "data/readers/image.h"

namespace dpt {
namespace {

int64_t big_endian_at(std::span<const std::byte> bytes, size_t at, size_t count) {
  int64_t out = 0;
  for (size_t i = 0; i < count; ++i) out = out << 8 | std::to_integer<int64_t>(bytes[at + i]);
  return out;
}

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

}  // namespace

std::optional<ImageSize> image_size(std::span<const std::byte> bytes) {
  constexpr size_t kPng = 24;  // the signature, and IHDR's length, name, width and height
  const auto begins = [&](const char* text, size_t count) {
    return bytes.size() >= count && std::memcmp(bytes.data(), text, count) == 0;
  };
  if (begins("\xff\xd8", 2)) return jpeg_size(bytes);
  if (!begins("\x89PNG\r\n\x1a\n", 8) || bytes.size() < kPng) return std::nullopt;
  return ImageSize{.height = big_endian_at(bytes, 20, 4), .width = big_endian_at(bytes, 16, 4)};
}

}  // namespace dpt
