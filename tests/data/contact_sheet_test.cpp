#include "data/contact_sheet.h"

#include <doctest/doctest.h>

#include "data/readers/image.h"
#include "data/small_font.h"
#include "data/transforms/images.h"
#include "formats/png.h"
#include "skip.h"

namespace dpt {
namespace {

// The red part of a pixel.
int at(const ContactSheet& s, int64_t y, int64_t x) {
  return s.pixels[static_cast<size_t>((y * s.width + x) * 3)];
}

TEST_CASE("samples stand in a grid, enlarged, with labels below") {
  const std::vector<Choice> list = {transform_of("to_tensor", "{}")};
  const BatchLoader loader(counting_images(5, {1, 4, 8}), list, {});
  const std::vector<uint32_t> rows{0, 1, 2, 3, 4};
  const std::vector<std::string> labels{"A", "", "-", "A", "A LABEL THAT IS TOO LONG"};
  const ContactSheet s = contact_sheet(loader, rows, labels, {});
  // Columns of 64 pixels, 8 for each of the image; rows of 32 and 12 for the label.
  CHECK(s.width == 6 + 3 * 70);
  CHECK(s.height == 6 + 2 * 50);
  CHECK(at(s, 0, 0) == 255);
  CHECK(at(s, 6, 6) == 0);  // values 1 to 32 of 255, scaled
  CHECK(at(s, 6 + 31, 6 + 63) == 255);
  CHECK(at(s, 6, 6 + 70 + 8) == 8);
  CHECK(at(s, 6 + 34, 6) == 255);  // the A's upper left corner is empty
  CHECK(at(s, 6 + 34, 6 + 2) == 0);
  CHECK(at(s, 6 + 50 + 34, 6 + 140) == 255);  // there is no sixth sample
}

TEST_CASE("labels are drawn without the marks on letters") {
  CHECK(drawable("Äpfel (süß), Żółć: 5") == "Apfel (sUSS), ZOLC: 5");
  CHECK(drawable("a\u0308b") == "ab");  // a mark of its own, as in names of files on macOS
  CHECK(drawable("日本 \xff") == "?? ?");
}

TEST_CASE("values outside of 0..255 are scaled, large images reduced") {
  const std::vector<Choice> list = {transform_of("to_tensor", "{}"),
                                    transform_of("normalize", "{mean: 0.5, std: 0.5}")};
  Dataset d = counting_images(1, {3, 200, 320});
  NewTable x(d.inputs.desc);
  std::ranges::fill(x.as<uint8_t>(), uint8_t{255});
  x.as<uint8_t>()[0] = 0;
  d.inputs = std::move(x).done();
  const BatchLoader loader(d, list, {});
  const ContactSheet s =
      contact_sheet(loader, std::vector<uint32_t>{0}, std::vector<std::string>{""}, {});
  CHECK(s.width == 12 + 160);
  CHECK(at(s, 6, 6) == 191);  // a quarter of the pixel is black
  CHECK(at(s, 6, 7) == 255);
}

TEST_CASE("bright images are shown as they are") {
  const std::vector<Choice> list = {transform_of("to_tensor", "{}")};
  const BatchLoader loader(counting_images(1, {1, 2, 100}), list, {});  // 1 to 200, of 255
  const ContactSheet s =
      contact_sheet(loader, std::vector<uint32_t>{0}, std::vector<std::string>{""}, {});
  CHECK(at(s, 6, 6) == 1);
  CHECK(at(s, 7, 6 + 99) == 200);
}

TEST_CASE("images far darker than white are scaled") {
  const std::vector<Choice> list = {transform_of("to_tensor", "{}"),
                                    transform_of("divide", "{by: 255}")};
  const BatchLoader loader(counting_images(1, {1, 1, 64}), list, {});  // 1 to 64, of 255 * 255
  const ContactSheet s =
      contact_sheet(loader, std::vector<uint32_t>{0}, std::vector<std::string>{""}, {});
  CHECK(at(s, 6, 6) == 0);
  CHECK(at(s, 6, 6 + 63) == 255);
}

TEST_CASE("a sheet is for images") {
  const BatchLoader loader(counting_images(1, {2, 4, 8}), {}, {});
  CHECK(has(error_of(Fault::spec,
                     [&] {
                       contact_sheet(loader, std::vector<uint32_t>{0}, std::vector<std::string>{""},
                                     {});
                     }),
            "but the samples are [2, 4, 8]"));
}

TEST_CASE("a PNG file has the pixels that were written") {
  if (skip_without(reads_png(), "libpng")) return;
  std::vector<uint8_t> pixels(5 * 7 * 3);
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<uint8_t>(i * 37);
  const std::string bytes = png_file(pixels, 5, 7);
  const Image image = decode_image(std::as_bytes(std::span(bytes)), "x.png");
  CHECK(image.height == 5);
  CHECK(image.width == 7);
  CHECK(image.pixels == pixels);
}

TEST_CASE("small letters") {
  CHECK(text_pixels("") == 0);
  CHECK(text_pixels("ab") == 7);
  std::string seven;
  for (int64_t y = 0; y < kGlyphHeight; ++y)
    for (int64_t x = 0; x < kGlyphWidth; ++x) seven += glyph_pixel('7', x, y) ? '#' : '.';
  CHECK(seven == "###..#..#..#..#");
  CHECK(glyph_pixel('a', 0, 1) == glyph_pixel('A', 0, 1));
  for (char c = ' '; c < '\x7f'; ++c) {
    int set = 0;
    for (int64_t i = 0; i < 15; ++i) set += glyph_pixel(c, i % 3, i / 3) ? 1 : 0;
    CHECK((set > 0) == (c != ' '));
  }
}

}  // namespace
}  // namespace dpt
