#include "data/readers/image.h"

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "base/fail.h"
#include "data/readers/image_formats.h"

namespace dpt {

using namespace std::string_view_literals;

namespace {

// PIL's limit against decompression bombs: twice a quarter of a gigabyte divided by three bytes.
constexpr uint64_t kMostPixels = 178956970;
// Upper bound of pixels per byte of a file: deflate expands a byte to at most 1032 bytes of 8
// pixels each, LZW to 1400, and JPEG expands less.
constexpr uint64_t kMostOfByte = uint64_t{8} * 1400;

bool begins(std::span<const std::byte> bytes, std::string_view with) {
  return bytes.size() >= with.size() && std::memcmp(bytes.data(), with.data(), with.size()) == 0;
}

// P1 to P6, and white space.
bool is_pnm(std::span<const std::byte> bytes) {
  const auto at = [&](size_t i) { return std::to_integer<char>(bytes[i]); };
  return bytes.size() >= 3 && at(0) == 'P' && at(1) >= '1' && at(1) <= '6' &&
         " \t\n\v\f\r"sv.find(at(2)) != std::string_view::npos;
}

}  // namespace

void damaged_image(const std::string& path, std::string_view format, std::string_view why) {
  fail(Fault::data, "{} cannot be read as {}: {}. Fetch the file again, or remove it.", path,
       format, why);
}

void unsupported_image(const std::string& path, std::string_view format, std::string_view variant,
                       std::string_view remedy) {
  fail(Fault::data, "{} is a {} image {}, which dptrain does not read; {}", path, format, variant,
       remedy);
}

bool plausible_size(const ImageSize& size) {
  return size.height > 0 && size.width > 0 &&
         size.height <= static_cast<int64_t>(kMostPixels) / size.width;
}

void check_image_size(uint64_t height, uint64_t width, size_t file_bytes, const std::string& path,
                      std::string_view format, uint64_t always) {
  const uint64_t most = std::max(file_bytes * kMostOfByte, always);
  if (height == 0 || width == 0 || height > most / width)
    damaged_image(path, format,
                  fmt::format("its header announces {} x {} pixels, which its {} bytes can't hold",
                              width, height, file_bytes));
  if (height > kMostPixels / width)
    fail(Fault::data,
         "{} has {} x {} pixels, but images of at most {} pixels are read, as by Pillow; make it "
         "smaller, or remove it",
         path, width, height, kMostPixels);
}

Image new_image(uint64_t height, uint64_t width) {
  return {.height = static_cast<int64_t>(height),
          .width = static_cast<int64_t>(width),
          .pixels = std::vector<uint8_t>(height * width * 3)};
}

bool is_image_ending(std::string_view extension) {
  static constexpr std::string_view kEndings[] = {".jpg", ".jpeg", ".png",  ".bmp", ".ppm",
                                                  ".pgm", ".pnm",  ".webp", ".tif", ".tiff"};
  const auto same = [&](std::string_view known) {
    return std::ranges::equal(extension, known, [](char a, char b) {
      return (a >= 'A' && a <= 'Z' ? static_cast<char>(a - 'A' + 'a') : a) == b;
    });
  };
  return std::ranges::any_of(kEndings, same);
}

ImageFormat image_format(std::span<const std::byte> bytes) {
  if (begins(bytes, "\xff\xd8\xff")) return ImageFormat::jpeg;
  if (begins(bytes, "\x89PNG\r\n\x1a\n")) return ImageFormat::png;
  if (begins(bytes, "BM")) return ImageFormat::bmp;
  if (begins(bytes, "RIFF") && begins(bytes.subspan(std::min<size_t>(8, bytes.size())), "WEBP"))
    return ImageFormat::webp;
  // Little-endian and big-endian, with offsets of 32 and of 64 bits.
  for (const std::string_view start : {"II*\0"sv, "MM\0*"sv, "II+\0"sv, "MM\0+"sv})
    if (begins(bytes, start)) return ImageFormat::tiff;
  return is_pnm(bytes) ? ImageFormat::pnm : ImageFormat::other;
}

Image decode_image(std::span<const std::byte> bytes, const std::string& path) {
  switch (image_format(bytes)) {
    case ImageFormat::jpeg:
      return decode_jpeg(bytes, path);
    case ImageFormat::png:
      return decode_png(bytes, path);
    case ImageFormat::bmp:
      return decode_bmp(bytes, path);
    case ImageFormat::pnm:
      return decode_pnm(bytes, path);
    case ImageFormat::webp:
      return decode_webp(bytes, path);
    case ImageFormat::tiff:
      return decode_tiff(bytes, path);
    case ImageFormat::other:
      break;
  }
  if (bytes.empty()) fail(Fault::data, "{} is empty; remove it", path);
  fail(
      Fault::data,
      "{} is not a JPEG, PNG, BMP, PPM, PGM, WebP or TIFF image{}; convert it to PNG, or remove it",
      path,
      is_image_ending(std::filesystem::path(path).extension().string()) ? ", despite its name"
                                                                        : "");
}

}  // namespace dpt
