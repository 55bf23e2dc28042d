// The decoders of image files, each in a file of its own, and what they share. image.cpp picks one
// by a file's first bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "data/readers/image.h"

namespace dpt {

enum class ImageFormat { jpeg, png, bmp, pnm, webp, tiff, other };
// The format of a file, by its first bytes; other: none of these, or too few bytes.
ImageFormat image_format(std::span<const std::byte> bytes);

// Each decodes a whole file. `path` is for messages. Throws as decode_image() does.
Image decode_jpeg(std::span<const std::byte> bytes, const std::string& path);
Image decode_png(std::span<const std::byte> bytes, const std::string& path);
Image decode_bmp(std::span<const std::byte> bytes, const std::string& path);
Image decode_pnm(std::span<const std::byte> bytes, const std::string& path);
Image decode_webp(std::span<const std::byte> bytes, const std::string& path);
Image decode_tiff(std::span<const std::byte> bytes, const std::string& path);

// The size in the header of a BMP or PNM file, of which `bytes` is the beginning; empty if there
// are too few bytes, or the header is wrong.
std::optional<ImageSize> bmp_size(std::span<const std::byte> bytes);
std::optional<ImageSize> pnm_size(std::span<const std::byte> bytes);
// Whether the header is that of a PGM with values above 255.
bool is_deep_pgm(std::span<const std::byte> bytes);

// Whether the size has no zero and at most as many pixels as PIL accepts.
bool plausible_size(const ImageSize& size);

// Throws Error{data}: the file cannot be read as `format`.
[[noreturn]] void damaged_image(const std::string& path, std::string_view format,
                                std::string_view why);

// Throws Error{data}: `format` has a variant, such as "with 16-bit samples", that is not read.
[[noreturn]] void unsupported_image(
    const std::string& path, std::string_view format, std::string_view variant,
    std::string_view remedy = "convert it to a PNG with 8 bits a channel");

// Checks the size in a file's header, before memory is allocated for it. Throws Error{data} if a
// side is 0, or if there are more pixels than PIL accepts, or than a file of so many bytes can
// hold. A file of any length may have up to `always` pixels.
void check_image_size(uint64_t height, uint64_t width, size_t file_bytes, const std::string& path,
                      std::string_view format, uint64_t always = 0);
// For formats that can store an image of one color in a few bytes.
inline constexpr uint64_t kPixelsOfAnyFile = uint64_t{1} << 24;

// `count` bytes from `at` as a number, the lowest byte first. REQUIRES: there are so many bytes.
inline uint64_t little_endian_at(std::span<const std::byte> bytes, size_t at, size_t count) {
  uint64_t out = 0;
  for (size_t i = count; i-- > 0;) out = out << 8 | std::to_integer<uint64_t>(bytes[at + i]);
  return out;
}

// The same, the highest byte first.
inline int64_t big_endian_at(std::span<const std::byte> bytes, size_t at, size_t count) {
  int64_t out = 0;
  for (size_t i = 0; i < count; ++i) out = out << 8 | std::to_integer<int64_t>(bytes[at + i]);
  return out;
}

// A black image whose size was checked.
Image new_image(uint64_t height, uint64_t width);

}  // namespace dpt
