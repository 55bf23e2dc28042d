// Decodes images like torchvision's default loader, that is, PIL's convert("RGB").
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dpt {

struct Image {
  int64_t height = 0, width = 0;
  std::vector<uint8_t> pixels;  // [height, width, 3]: red, green, blue
};

// Decodes a JPEG (libjpeg-turbo: gray, YCbCr, RGB, CMYK) or PNG (libpng: all kinds), decided by the
// first bytes. Transparency is dropped. 16-bit samples lose their lower 8 bits, except that gray
// images without alpha, which PIL reads as integers, are clipped to 255. `path` is for messages.
// Throws Error{data} if the image has another format, is damaged or cut short, announces more
// pixels than PIL accepts, or has a format that this build omits. Thread: any.
Image decode_image(std::span<const std::byte> bytes, const std::string& path);

struct ImageSize {
  int64_t height = 0, width = 0;
  bool operator==(const ImageSize&) const = default;
};
// The size in the header of a JPEG or PNG file, of which `bytes` is the beginning; empty if there
// are too few bytes, or it is no such file. Needs no library.
std::optional<ImageSize> image_size(std::span<const std::byte> bytes);

// Whether files with this extension are images that can be read: ".jpg", ".jpeg" or ".png", in any
// case.
bool is_image_ending(std::string_view extension);

// Whether this build can decode the format.
bool reads_jpeg();
bool reads_png();

// Resizes an image, bit for bit like Pillow 13's resize with BILINEAR (which averages when
// shrinking), as in torchvision's Resize of a PIL image. The width is resized first, unless more
// than twice as many rows as columns are removed. Up to version 12, Pillow always resized the width
// first; some pixels of such images differ by 1.
Image resized(const Image& image, int64_t height, int64_t width);

}  // namespace dpt
