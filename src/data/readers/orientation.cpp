#include "data/readers/orientation.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include <zlib.h>

#include "base/units.h"
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
// bytes each, with tag, type, count and value (EXIF 2.32, 4.6). Empty: it has no orientation.
std::optional<int> orientation_in(Bytes exif) {
  constexpr size_t kHeader = 8, kField = 12;
  constexpr uint64_t kOrientation = 0x0112, kShort = 3, kLong = 4;
  if (begins(exif, "Exif\0\0"sv)) exif = exif.subspan(6);
  const bool big = begins(exif, "MM\0*"sv);
  if (exif.size() < kHeader || (!big && !begins(exif, "II*\0"sv))) return {};
  const uint64_t list = number_at(exif, 4, 4, big);
  if (list > exif.size() || exif.size() - list < 2) return {};
  const uint64_t fields = number_at(exif, list, 2, big);
  for (size_t i = 0, at = list + 2; i < fields && exif.size() - at >= kField; ++i, at += kField) {
    const uint64_t type = number_at(exif, at + 2, 2, big);
    if (number_at(exif, at, 2, big) == kOrientation && (type == kShort || type == kLong))
      return static_cast<int>(number_at(exif, at + 8, type == kLong ? 4 : 2, big));
  }
  return {};
}

// In XMP: an attribute tiff:Orientation="6", or an element <tiff:Orientation>6<. Pillow looks for
// both, without parsing XML.
std::optional<int> orientation_in_xmp(std::string_view xmp) {
  constexpr std::string_view kName = "tiff:Orientation";
  for (size_t at = 0; (at = xmp.find(kName, at)) != xmp.npos;) {
    std::string_view rest = xmp.substr(at += kName.size());
    if (!rest.starts_with("=\"") && !rest.starts_with('>')) continue;
    rest.remove_prefix(rest[0] == '>' ? 1 : 2);
    if (!rest.empty() && rest[0] >= '0' && rest[0] <= '9') return rest[0] - '0';
  }
  return {};
}

std::string_view text_of(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// The data of the segment APP1 that begins with `name`: FF, marker, length, data. Such segments
// stand before the first scan.
Bytes segment_of_jpeg(Bytes bytes, std::string_view name) {
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
    if (marker == 0xe1 && begins(data, name)) return data;
    at += 2 + length;
  }
  return {};
}

// Calls f(name, data) for each chunk. Those of PNG: length, name, data, checksum. Those of WebP:
// name, length, data, which is padded to an even length.
template <class F>
void for_each_chunk(Bytes bytes, bool png, F&& f) {
  constexpr size_t kHead = 8;
  for (size_t at = png ? 8 : 12; at < bytes.size() && bytes.size() - at >= kHead;) {
    const size_t length = number_at(bytes, at + (png ? 0 : 4), 4, png);
    f(text_of(bytes.subspan(at + (png ? 4 : 0), 4)), part(bytes, at + kHead, length));
    at += kHead + length + (png ? 4 : length % 2);
  }
}

// Empty if it is damaged, or larger than Pillow reads.
std::string inflated(std::string_view packed) {
  uLongf size = kMiB;
  std::string out(size, '\0');
  const int result = uncompress(reinterpret_cast<Bytef*>(out.data()), &size,
                                reinterpret_cast<const Bytef*>(packed.data()), packed.size());
  out.resize(result == Z_OK ? size : 0);
  return out;
}

// The text of a PNG chunk tEXt, zTXt or iTXt with this keyword; empty: it is none.
std::string png_text(std::string_view chunk, std::string_view data, std::string_view keyword) {
  if (!data.starts_with(keyword) || !data.substr(keyword.size()).starts_with('\0')) return "";
  data.remove_prefix(keyword.size() + 1);
  if (chunk == "tEXt") return std::string(data);
  if (chunk == "zTXt") return data.empty() ? "" : inflated(data.substr(1));  // after the method
  if (chunk != "iTXt" || data.size() < 2) return "";
  const bool packed = data[0] != 0;
  data.remove_prefix(2);
  for (int i = 0; i < 2; ++i)  // the language, and the keyword in it
    data.remove_prefix(std::min(data.find('\0'), data.size() - 1) + 1);
  return packed ? inflated(data) : std::string(data);
}

// ImageMagick's "Raw profile type exif": a line break, "exif", the length, and hexadecimal digits
// in lines.
std::string raw_profile(std::string_view text) {
  for (int line = 0; line < 3; ++line)
    text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
  std::string out, digits;
  for (const char c : text) {
    if (c == '\n') continue;
    digits += c;
    if (digits.size() < 2) continue;
    unsigned value = 0;
    if (std::from_chars(digits.data(), digits.data() + 2, value, 16).ptr != digits.data() + 2)
      return "";
    out += static_cast<char>(value);
    digits.clear();
  }
  return out;
}

std::optional<int> orientation_of_jpeg(Bytes bytes) {
  const std::optional<int> exif = orientation_in(segment_of_jpeg(bytes, "Exif\0\0"sv));
  return exif ? exif
              : orientation_in_xmp(
                    text_of(segment_of_jpeg(bytes, "http://ns.adobe.com/xap/1.0/\0"sv)));
}

std::optional<int> orientation_of_png(Bytes bytes) {
  Bytes exif;
  std::string raw, xmp;
  for_each_chunk(bytes, true, [&](std::string_view name, Bytes data) {
    if (name == "eXIf" && exif.empty()) exif = data;
    if (raw.empty()) raw = png_text(name, text_of(data), "Raw profile type exif");
    if (xmp.empty()) xmp = png_text(name, text_of(data), "XML:com.adobe.xmp");
  });
  if (!raw.empty() && exif.empty()) raw = raw_profile(raw), exif = std::as_bytes(std::span(raw));
  const std::optional<int> out = orientation_in(exif);
  return out ? out : orientation_in_xmp(xmp);
}

std::optional<int> orientation_of_webp(Bytes bytes) {
  Bytes exif, xmp;
  for_each_chunk(bytes, false, [&](std::string_view name, Bytes data) {
    if (name == "EXIF" && exif.empty()) exif = data;
    if (name == "XMP " && xmp.empty()) xmp = data;
  });
  const std::optional<int> out = orientation_in(exif);
  return out ? out : orientation_in_xmp(text_of(xmp));
}

}  // namespace

int exif_orientation(Bytes bytes) {
  std::optional<int> out;
  switch (image_format(bytes)) {
    case ImageFormat::jpeg:
      out = orientation_of_jpeg(bytes);
      break;
    case ImageFormat::png:
      out = orientation_of_png(bytes);
      break;
    case ImageFormat::webp:
      out = orientation_of_webp(bytes);
      break;
    case ImageFormat::bmp:
    case ImageFormat::pnm:
    case ImageFormat::tiff:
    case ImageFormat::other:
      break;
  }
  return out && *out >= 1 && *out <= 8 ? *out : 1;
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
