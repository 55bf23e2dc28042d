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

// JPEG by libjpeg-turbo (grey, YCbCr, RGB, CMYK), PNG by libpng (all kinds), by the first bytes.
// Transparency is left out. 16 bits lose the lower 8; but grey ones without alpha, which PIL reads
// as integers, become 255 where they are larger. `path` is for messages. Throws
// Error{data} for what is neither, is damaged or cut short, announces more pixels than PIL reads,
// or was left out of this build. Thread: any.
Image decode_image(std::span<const std::byte> bytes, const std::string& path);

// Whether this build reads them.
bool reads_jpeg();
bool reads_png();

// The whole image in another size, to the bit as resize with BILINEAR of Pillow 13, which averages
// where it shrinks: torchvision's Resize of a PIL image. The width changes first, but where more
// than twice as many rows as columns are lost: up to Pillow 12 it always did, and some pixels of
// such images differ by 1.
Image resized(const Image& image, int64_t height, int64_t width);

}  // namespace dpt
