#include "data/readers/image.h"

#include <algorithm>
#include <cstring>

#include "base/fail.h"
#include "data/readers/image_formats.h"

namespace dpt {
namespace {

bool begins(std::span<const std::byte> bytes, std::string_view with) {
  return bytes.size() >= with.size() && std::memcmp(bytes.data(), with.data(), with.size()) == 0;
}

}  // namespace

void damaged_image(const std::string& path, std::string_view format, std::string_view why) {
  fail(Fault::data, "{} cannot be read as {}: {}. Fetch the file again, or remove it.", path,
       format, why);
}

Image new_image(uint64_t height, uint64_t width, size_t file_bytes, const std::string& path,
                std::string_view format) {
  // PIL's limit against decompression bombs: twice a quarter of a gigabyte divided by three bytes.
  constexpr uint64_t kMostPixels = 178956970;
  // Upper bound of pixels per byte of a file: deflate expands a byte to at most 1032 bytes of 8
  // pixels each, and JPEG expands less.
  constexpr uint64_t kMostOfByte = 8 * 1032;
  if (height == 0 || width == 0 || height > std::min(kMostPixels, file_bytes * kMostOfByte) / width)
    damaged_image(path, format,
                  fmt::format("its header announces {} x {} pixels, which its {} bytes can't hold",
                              width, height, file_bytes));
  return {.height = static_cast<int64_t>(height),
          .width = static_cast<int64_t>(width),
          .pixels = std::vector<uint8_t>(height * width * 3)};
}

bool is_image_ending(std::string_view extension) {
  const auto same = [&](std::string_view known) {
    return std::ranges::equal(extension, known, [](char a, char b) {
      return (a >= 'A' && a <= 'Z' ? static_cast<char>(a - 'A' + 'a') : a) == b;
    });
  };
  return same(".jpg") || same(".jpeg") || same(".png");
}

Image decode_image(std::span<const std::byte> bytes, const std::string& path) {
  if (begins(bytes, "\xff\xd8\xff")) return decode_jpeg(bytes, path);
  if (begins(bytes, "\x89PNG\r\n\x1a\n")) return decode_png(bytes, path);
  fail(Fault::data, "{} is neither a JPEG nor a PNG image, despite its name; remove it", path);
}

}  // namespace dpt
