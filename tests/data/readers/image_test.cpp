#include "data/readers/image.h"

#include <algorithm>
#include <filesystem>

#include <doctest/doctest.h>

#include "../datasets/loading.h"
#include "formats/safetensors.h"
#include "paths.h"
#include "skip.h"

namespace dpt {
namespace {

const std::string kImages = test_file("fixtures/images");

Image decoded(const std::string& bytes) {
  return decode_image(std::as_bytes(std::span(bytes)), "x.img");
}

TEST_CASE("the size in a file's header is that of the decoded image") {
  if (!reads_jpeg() || !reads_png()) {
    MESSAGE("skipped: built without libjpeg-turbo or libpng");
    return;
  }
  for (const auto& entry : std::filesystem::recursive_directory_iterator(kImages)) {
    if (!is_image_ending(entry.path().extension().string())) continue;
    CAPTURE(entry.path().string());
    const std::string bytes = read_file(entry.path().string());
    const std::span<const std::byte> all = std::as_bytes(std::span(bytes));
    const Image image = decoded(bytes);
    CHECK(image_size(all) == ImageSize{image.height, image.width});
    for (size_t cut = 0; cut < std::min<size_t>(bytes.size(), 800); ++cut) {
      const auto size = image_size(all.first(cut));
      const bool right = !size || size == ImageSize{image.height, image.width};
      CHECK(right);
    }
  }
  const auto of = [](const std::string& bytes) {
    return image_size(std::as_bytes(std::span(bytes)));
  };
  CHECK_FALSE(of("GIF89a and more text than a header has"));
  CHECK_FALSE(of(std::string("\xff\xd8\x00\x01\x02\x03\x04\x05\x06\x07\x08", 11)));
}

// Every kind of file, made and read by PIL and torchvision: tests/fixtures/images.py.
TEST_CASE("folders of images are torchvision's ImageFolder, Resize and CenterCrop to the bit") {
  if (!reads_jpeg() || !reads_png()) {
    MESSAGE("skipped: built without libjpeg-turbo or libpng");
    return;
  }
  const SafeTensors file = SafeTensors::read(test_file("fixtures/images.safetensors"));
  const std::pair<std::string, std::string> cases[] = {{"crop", "crop: 9"},
                                                       {"shorter", "resize: 12, crop: [10, 11]"},
                                                       {"exact", "resize: [13, 7]"},
                                                       {"flat", "resize: [5, 24]"},
                                                       {"larger", "resize: 40, crop: 44"},
                                                       {"kinds", "crop: [5, 9]"}};
  for (const auto& c : cases) {
    const std::string &name = c.first, &settings = c.second;
    CAPTURE(name);
    const std::string folder = name == "kinds" ? test_file("fixtures/png_kinds") : kImages;
    const Dataset d = load("image_folder", "{path: " + folder + ", " + settings + "}");
    const SafeTensors::Entry *x = file.find(name + ".inputs"), *y = file.find(name + ".targets");
    REQUIRE(x);
    REQUIRE(d.inputs.desc == x->desc);
    CHECK(std::equal(d.targets.data.get(), d.targets.data.get() + d.targets.desc.bytes(), y->data));
    const auto bytes = static_cast<size_t>(d.inputs.sample().elements());
    std::vector<std::byte> got(bytes);
    for (uint32_t n = 0; n < d.size(); ++n) {
      CAPTURE(n);
      d.reader->read(n, got);
      size_t different = 0;
      for (size_t i = 0; i < bytes; ++i) different += got[i] != x->data[n * bytes + i];
      CHECK(different == 0);
    }
  }
}

TEST_CASE("images that are damaged, cut short or lie are refused by name") {
  const auto why = [](const std::string& bytes) { return data_error([&] { decoded(bytes); }); };
  CHECK(why("hello") == "x.img is neither a JPEG nor a PNG image, despite its name; remove it");
  if (skip_without(reads_jpeg() && reads_png(), "libjpeg-turbo and libpng")) return;
  const std::string jpeg = read_file(kImages + "/jpeg/420.jpg"),
                    png = read_file(kImages + "/png/rgb.png");
  CHECK(decoded(jpeg).width == 22);
  CHECK(decoded(png).height == 25);
  // Every shorter file, but one without JPEG's last mark.
  for (size_t n = 8; n < jpeg.size() - 2; n += 7)
    CHECK(has(why(jpeg.substr(0, n)), "x.img cannot be read as JPEG: "));
  for (size_t n = 8; n < png.size(); n += 7)
    CHECK(has(why(png.substr(0, n)), "x.img cannot be read as PNG: "));
  CHECK(has(why(jpeg.substr(0, 300)), "Fetch the file again, or remove it."));
  std::string flipped = png;
  flipped[png.size() / 2] = static_cast<char>(flipped[png.size() / 2] ^ 1);
  CHECK(has(why(flipped), "x.img cannot be read as PNG: "));
  // A JPEG of 60000 x 60000 in 898 bytes: height and width stand in its frame header, FF C0.
  std::string huge = jpeg;
  const size_t frame = huge.find("\xff\xc0");
  REQUIRE(frame != huge.npos);
  for (const size_t at : {frame + 5, frame + 7}) huge.replace(at, 2, "\xea\x60");
  CHECK(
      has(why(huge), "its header announces 60000 x 60000 pixels, which its 898 bytes can't hold"));
}

TEST_CASE("resized: the same size is the same image, and one colour stays one") {
  Image image{3, 5, std::vector<uint8_t>(45)};
  for (size_t i = 0; i < 45; ++i) image.pixels[i] = static_cast<uint8_t>(i * 5);
  CHECK(resized(image, 3, 5).pixels == image.pixels);
  std::ranges::fill(image.pixels, uint8_t{211});
  for (const auto& [height, width] : {std::pair{1, 1}, {2, 9}, {17, 3}, {50, 50}})
    for (const uint8_t v : resized(image, height, width).pixels) CHECK(v == 211);
}

}  // namespace
}  // namespace dpt
