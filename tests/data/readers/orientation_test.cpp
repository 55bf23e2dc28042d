#include "data/readers/orientation.h"

#include <fmt/format.h>
#include <zlib.h>

#include "data/folder.h"

namespace dpt {
namespace {

std::string little_endian(uint64_t value, size_t bytes) {
  std::string out;
  for (size_t i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i));
  return out;
}

// EXIF data with two fields; the second is the orientation, as SHORT or LONG.
std::string exif(int orientation, bool big, bool wide = false) {
  const auto number = [&](uint64_t x, size_t n) {
    return big ? big_endian(x, n) : little_endian(x, n);
  };
  const auto field = [&](uint64_t tag, uint64_t value) {
    return number(tag, 2) + number(wide ? 4 : 3, 2) + number(1, 4) +
           (wide ? number(value, 4) : number(value, 2) + number(0, 2));
  };
  return std::string(big ? "MM" : "II") + number(42, 2) + number(8, 4) + number(2, 2) +
         field(0x0100, 7) + field(0x0112, static_cast<uint64_t>(orientation)) + number(0, 4);
}

int orientation_of(const std::string& file) {
  return exif_orientation(std::as_bytes(std::span(file)));
}

std::string jpeg(const std::string& exif_data,
                 const std::string& begin = std::string("Exif\0\0", 6)) {
  const std::string app1 = begin + exif_data;
  return "\xff\xd8\xff\xe0" + big_endian(4, 2) + "ab\xff\xe1" + big_endian(app1.size() + 2, 2) +
         app1 + "\xff\xda";
}

std::string png(const std::string& exif_data, const std::string& chunk = "eXIf") {
  return "\x89PNG\r\n\x1a\n" + big_endian(3, 4) + "abcdxyz1234" + big_endian(exif_data.size(), 4) +
         chunk + exif_data + "1234";
}

std::string webp(const std::string& exif_data, const std::string& chunk = "EXIF") {
  return "RIFF....WEBPVP8X" + little_endian(3, 4) + "abc" + '\0' + chunk +
         little_endian(exif_data.size(), 4) + exif_data;
}

// The pixels of an upright image of 3 x 2 pixels with the numbers 0 to 5.
std::string turned(int orientation) {
  Image image{.height = 2, .width = 3, .pixels = {}};
  for (uint8_t i = 0; i < 6; ++i) image.pixels.insert(image.pixels.end(), {i, i, i});
  const Image out = upright(image, orientation);
  std::string text;
  for (int64_t y = 0; y < out.height; ++y) {
    for (int64_t x = 0; x < out.width; ++x)
      text += std::to_string(out.pixels[static_cast<size_t>((y * out.width + x) * 3)]);
    text += ' ';
  }
  return text;
}

TEST_CASE("the orientation in EXIF data of JPEG, PNG and WebP") {
  for (const bool big : {false, true})
    for (int i = 1; i <= 8; ++i) {
      CHECK(orientation_of(jpeg(exif(i, big))) == i);
      CHECK(orientation_of(png(exif(i, big))) == i);
      CHECK(orientation_of(webp(exif(i, big))) == i);
      CHECK(orientation_of(jpeg(exif(i, big, true))) == i);
    }
}

std::string packed(const std::string& text) {
  uLongf size = compressBound(text.size());
  std::string out(size, '\0');
  compress(reinterpret_cast<Bytef*>(out.data()), &size, reinterpret_cast<const Bytef*>(text.data()),
           text.size());
  out.resize(size);
  return out;
}

TEST_CASE("the orientation in XMP, where EXIF data have none") {
  const std::string space = std::string("http://ns.adobe.com/xap/1.0/\0", 29),
                    key = std::string("XML:com.adobe.xmp\0", 18);
  for (const std::string xmp : {"<x tiff:Orientation=\"6\"/>", "<tiff:Orientation>6</x>",
                                "tiff:Orientation is tiff:Orientation=\"6\""}) {
    CHECK(orientation_of(jpeg(xmp, space)) == 6);
    CHECK(orientation_of(webp(xmp, "XMP ")) == 6);
    const std::string plain = key + std::string("\0\0en\0name\0", 10) + xmp;
    CHECK(orientation_of(png(plain, "iTXt")) == 6);
    CHECK(orientation_of(png(key + std::string("\1\0\0\0", 4) + packed(xmp), "iTXt")) == 6);
    for (size_t n = 0; n < plain.size(); ++n) orientation_of(png(plain.substr(0, n), "iTXt"));
  }
  CHECK(orientation_of(jpeg("tiff:Orientation=\"9\"", space)) == 1);
  CHECK(orientation_of(jpeg("tiff:Orientation=", space)) == 1);
  // EXIF data come first.
  const std::string both = webp(exif(3, true));
  CHECK(orientation_of(both + "XMP " + little_endian(20, 4) + "tiff:Orientation>6..") == 3);
}

TEST_CASE("the orientation in a PNG's raw profile") {
  std::string hex;
  for (const char c : exif(8, true)) hex += fmt::format("{:02x}", static_cast<uint8_t>(c));
  const std::string key = std::string("Raw profile type exif\0", 22),
                    text = "\nexif\n      38\n" + hex.substr(0, 20) + "\n" + hex.substr(20) + "\n";
  CHECK(orientation_of(png(key + text, "tEXt")) == 8);
  CHECK(orientation_of(png(key + '\0' + packed(text), "zTXt")) == 8);
  CHECK(orientation_of(png(key + '\0' + "no zlib", "zTXt")) == 1);
  CHECK(orientation_of(png(key + "\nexif\n 4\nxy", "tEXt")) == 1);
  for (size_t n = 0; n < text.size(); ++n) orientation_of(png(key + text.substr(0, n), "tEXt"));
}

TEST_CASE("damaged EXIF data counts as none") {
  CHECK(orientation_of("") == 1);
  CHECK(orientation_of("no image at all, but a longer text") == 1);
  CHECK(orientation_of(jpeg(exif(9, false))) == 1);
  CHECK(orientation_of(jpeg(exif(0, true))) == 1);
  CHECK(orientation_of(jpeg("II*")) == 1);
  for (const std::string& whole : {jpeg(exif(6, true)), png(exif(6, true)), webp(exif(6, false))})
    for (size_t n = 0; n < whole.size(); ++n) {
      const int found = orientation_of(whole.substr(0, n));
      CHECK((found == 1 || found == 6));
    }
  std::string far = exif(6, false);
  far[4] = far[5] = far[6] = far[7] = '\xff';  // the list of fields is beyond the end
  CHECK(orientation_of(jpeg(far)) == 1);
}

// As Pillow's Image.transpose() with FLIP_LEFT_RIGHT, ROTATE_180, FLIP_TOP_BOTTOM, TRANSPOSE,
// ROTATE_270, TRANSVERSE and ROTATE_90.
TEST_CASE("images are turned as by Pillow's exif_transpose") {
  CHECK(turned(1) == "012 345 ");
  CHECK(turned(2) == "210 543 ");
  CHECK(turned(3) == "543 210 ");
  CHECK(turned(4) == "345 012 ");
  CHECK(turned(5) == "03 14 25 ");
  CHECK(turned(6) == "30 41 52 ");
  CHECK(turned(7) == "52 41 30 ");
  CHECK(turned(8) == "25 14 03 ");
  CHECK(turned(9) == "012 345 ");
}

}  // namespace
}  // namespace dpt
