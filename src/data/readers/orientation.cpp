#include "data/readers/orientation.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string_view>

#include "data/readers/image_formats.h"

namespace dpt {
namespace {

using Bytes = std::span<const std::byte>;
using namespace std::string_view_literals;

bool begins(Bytes bytes, std::string_view with) {
  return bytes.size() >= with.size() && std::memcmp(bytes.data(), with.data(), with.size()) == 0;
}

uint64_t number_at(Bytes bytes, size_t at, size_t count, bool big_endian) {
  if (!big_endian) return little_endian_at(bytes, at, count);
  uint64_t out = 0;
  for (size_t i = 0; i < count; ++i) out = out << 8 | std::to_integer<uint64_t>(bytes[at + i]);
  return out;
}

Bytes part(Bytes bytes, size_t at, size_t count) {
  return at < bytes.size() ? bytes.subspan(at, std::min(count, bytes.size() - at)) : Bytes();
}

// EXIF data is a TIFF file without an image: byte order, 42, the offset of a list of fields of 12
// bytes each, with tag, type, count and value (EXIF 2.32, 4.6).
int orientation_in(Bytes exif) {
  constexpr size_t kHeader = 8, kField = 12;
  constexpr uint64_t kOrientation = 0x0112, kShort = 3;
  if (begins(exif, "Exif\0\0"sv)) exif = exif.subspan(6);
  const bool big = begins(exif, "MM\0*"sv);
  if (exif.size() < kHeader || (!big && !begins(exif, "II*\0"sv))) return 1;
  const uint64_t list = number_at(exif, 4, 4, big);
  if (list > exif.size() || exif.size() - list < 2) return 1;
  const uint64_t fields = number_at(exif, list, 2, big);
  for (size_t i = 0, at = list + 2; i < fields && exif.size() - at >= kField; ++i, at += kField)
    if (number_at(exif, at, 2, big) == kOrientation && number_at(exif, at + 2, 2, big) == kShort) {
      const uint64_t value = number_at(exif, at + 8, 2, big);
      return value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
    }
  return 1;
}

// The segment APP1 with EXIF stands before the first scan: FF, marker, length, data.
Bytes exif_of_jpeg(Bytes bytes) {
  for (size_t at = 2; at + 4 <= bytes.size() && bytes[at] == std::byte{0xff};) {
    const auto marker = std::to_integer<int>(bytes[at + 1]);
    if (marker == 0xff) {  // padding
      ++at;
      continue;
    }
    if (marker == 0xda) break;                                   // the first scan
    if (marker == 0x01 || (marker >= 0xd0 && marker <= 0xd8)) {  // without a length
      at += 2;
      continue;
    }
    const size_t length = number_at(bytes, at + 2, 2, true);
    if (length < 2) break;
    const Bytes data = part(bytes, at + 4, length - 2);
    if (marker == 0xe1 && begins(data, "Exif\0\0"sv)) return data;
    at += 2 + length;
  }
  return {};
}

// Chunks of PNG: length, name, data, checksum. Those of WebP: name, length, data, which is padded
// to an even length.
Bytes chunk_of(Bytes bytes, size_t begin, std::string_view name, bool png) {
  constexpr size_t kHead = 8;
  for (size_t at = begin; at < bytes.size() && bytes.size() - at >= kHead;) {
    const size_t length = number_at(bytes, at + (png ? 0 : 4), 4, png);
    if (begins(bytes.subspan(at + (png ? 4 : 0)), name)) return part(bytes, at + kHead, length);
    at += kHead + length + (png ? 4 : length % 2);
  }
  return {};
}

}  // namespace

int exif_orientation(Bytes bytes) {
  switch (image_format(bytes)) {
    case ImageFormat::jpeg:
      return orientation_in(exif_of_jpeg(bytes));
    case ImageFormat::png:
      return orientation_in(chunk_of(bytes, 8, "eXIf", true));
    case ImageFormat::webp:
      return orientation_in(chunk_of(bytes, 12, "EXIF", false));
    case ImageFormat::bmp:
    case ImageFormat::pnm:
    case ImageFormat::tiff:
    case ImageFormat::other:
      break;
  }
  return 1;
}

Image upright(Image image, int orientation) {
  if (orientation < 2 || orientation > 8) return image;
  const auto one_of = [&](std::initializer_list<int> all) {
    return std::ranges::find(all, orientation) != all.end();
  };
  const bool transpose = exchanges_sides(orientation), flip_x = one_of({2, 3, 7, 8}),
             flip_y = one_of({3, 4, 6, 7});
  const auto height = static_cast<uint64_t>(image.height),
             width = static_cast<uint64_t>(image.width);
  Image out = transpose ? new_image(width, height) : new_image(height, width);
  uint8_t* to = out.pixels.data();
  for (int64_t y = 0; y < out.height; ++y)
    for (int64_t x = 0; x < out.width; ++x) {
      int64_t from_y = transpose ? x : y, from_x = transpose ? y : x;
      if (flip_x) from_x = image.width - 1 - from_x;
      if (flip_y) from_y = image.height - 1 - from_y;
      to = std::copy_n(image.pixels.data() + (from_y * image.width + from_x) * 3, 3, to);
    }
  return out;
}

}  // namespace dpt
