// Photographs as torchvision's default loader gives them, which is PIL's convert("RGB").
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace dpt {

struct Image {
  int64_t height = 0, width = 0;
  std::vector<uint8_t> pixels;  // [height, width, 3]: red, green, blue
};

// JPEG by libjpeg-turbo (grey, YCbCr, RGB, CMYK), PNG by libpng (all kinds; transparency is left
// out, of 16 bits the upper 8 are taken), by the first bytes. `path` is for messages. Throws
// Error{data} for what is neither, is damaged or cut short, announces more pixels than PIL reads,
// or was left out of this build. Thread: any.
Image decode_image(std::span<const std::byte> bytes, const std::string& path);

// Whether this build reads them.
bool reads_jpeg();
bool reads_png();

// The whole image in another size, to the bit as PIL's resize with BILINEAR, which averages where
// it shrinks: torchvision's Resize of a PIL image. Rows first, then columns, as Pillow up to 12;
// Pillow 13 begins with columns where the height shrinks much more than the width, which makes a
// difference of 1 in some pixels.
Image resized(const Image& image, int64_t height, int64_t width);

}  // namespace dpt
