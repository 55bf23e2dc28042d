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

// Decodes an image, whose format the first bytes decide:
//   JPEG       libjpeg-turbo: gray, YCbCr, RGB, CMYK
//   PNG        libpng: all kinds
//   BMP        1, 4 and 8 bits with a palette, 16, 24 and 32 bits; not compressed
//   PPM, PGM   P2, P3, P5 and P6 with largest values up to 65535
//   WebP       libwebp: all but animations
//   TIFF       libtiff: the first page; gray and palette with 1 to 8 bits, RGB with 8 bits, JPEG.
//              Turned as its orientation says
// Transparency is dropped. 16-bit samples lose their lower 8 bits, except that gray images without
// alpha, which PIL reads as integers, are clipped to 255. `path` is for messages. Throws
// Error{data} if the image has another format, is damaged or cut short, announces more pixels than
// PIL accepts, or has a format that this build omits. Thread: any.
Image decode_image(std::span<const std::byte> bytes, const std::string& path);

struct ImageSize {
  int64_t height = 0, width = 0;
  bool operator==(const ImageSize&) const = default;
};
// The size in the header of an image, of which `bytes` is the beginning. Needs no library. Empty if
// there are too few bytes, if a side is 0, if there are more pixels than PIL accepts, for TIFF,
// whose header may stand anywhere in the file, and for all that is no image.
std::optional<ImageSize> image_size(std::span<const std::byte> bytes);

// Whether a PNG or PGM has 16-bit gray values, of which Pillow's convert("RGB") makes all above 255
// white. By its header: `bytes` may be the beginning of the file.
bool has_gray16(std::span<const std::byte> bytes);
// How to save such an image with 8 bits, in Python.
inline constexpr std::string_view kTo8Bits =
    "PIL.Image.open(FILE).point(lambda v: v / 257).convert(\"L\").save(\"NEW.png\")";

// Whether files with this extension, in any case, are images that can be read.
bool is_image_ending(std::string_view extension);
// These extensions, for messages.
inline constexpr std::string_view kImageEndings =
    ".jpg, .jpeg, .png, .bmp, .ppm, .pgm, .pnm, .webp, .tif or .tiff";

// Whether this build can decode the format.
bool reads_jpeg();
bool reads_png();
bool reads_webp();
bool reads_tiff();

// Resizes an image, bit for bit like Pillow 13's resize with BILINEAR (which averages when
// shrinking), as in torchvision's Resize of a PIL image. The width is resized first, unless more
// than twice as many rows as columns are removed. Up to version 12, Pillow always resized the width
// first; some pixels of such images differ by 1.
Image resized(const Image& image, int64_t height, int64_t width);

}  // namespace dpt
