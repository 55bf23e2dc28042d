#include "data/readers/image.h"

#include <algorithm>
#include <filesystem>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <zlib.h>

#include "../datasets/loading.h"
#include "../peak_growth.h"
#include "formats/safetensors.h"
#include "paths.h"
#include "skip.h"

namespace dpt {
namespace {

const std::string kImages = test_file("fixtures/images");
const std::string kKinds = test_file("fixtures/image_kinds");

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

TEST_CASE("16-bit gray values of a PNG are known by its header") {
  const auto deep = [](const std::string& name) {
    const std::string bytes = read_file(test_file("fixtures/" + name));
    return has_gray16(std::as_bytes(std::span(bytes)));
  };
  CHECK(deep("png_kinds/png/grey16-edges.png"));
  CHECK_FALSE(deep("png_kinds/png/grey1.png"));
  CHECK_FALSE(deep("png_kinds/png/grey-alpha16.png"));  // its upper bytes are taken
  CHECK_FALSE(deep("images/jpeg/420.jpg"));
  CHECK_FALSE(has_gray16({}));
  const auto pgm = [](std::string_view text) { return has_gray16(std::as_bytes(std::span(text))); };
  CHECK(pgm("P5\n# depth\n2 1\n4095\n"));
  CHECK(pgm("P2 2 1 256 "));
  CHECK_FALSE(pgm("P5 2 1 255 "));
  CHECK_FALSE(pgm("P6 2 1 4095 "));  // scaled
  CHECK_FALSE(pgm("P5 2"));
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
  CHECK(why("hello") ==
        "x.img is not a JPEG, PNG, BMP, PPM, PGM, WebP or TIFF image; convert it "
        "to PNG, or remove it");
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

// PNG files of any kind, without filters.
struct PngFile {
  size_t width = 10, height = 10;
  int depth = 8, color = 0;  // as in IHDR
  bool interlaced = false;
  int level = 6;         // of zlib
  size_t chunk = 8192;   // bytes of an IDAT
  bool flushes = false;  // ends a block of deflate after each row
  size_t surplus = 0;    // zeros after the rows

  // seed: of random bytes; 0: all are 0.
  std::string bytes(uint32_t seed) const {
    const auto typed = [](const std::string& text) {
      const auto sum =
          crc32(0, reinterpret_cast<const Bytef*>(text.data()), static_cast<uInt>(text.size()));
      return big_endian(text.size() - 4, 4) + text + big_endian(sum, 4);
    };
    std::string out =
        "\x89PNG\r\n\x1a\n" +
        typed("IHDR" + big_endian(width, 4) + big_endian(height, 4) + static_cast<char>(depth) +
              static_cast<char>(color) + std::string(2, '\0') + static_cast<char>(interlaced));
    if (color == 3) out += typed("PLTE" + std::string(768, 'p'));
    const std::string packed = compressed(seed);
    for (size_t at = 0; at < packed.size(); at += chunk)
      out += typed("IDAT" + packed.substr(at, chunk));
    return out + typed("tEXt" + std::string(20000, 'x')) + typed("IEND");
  }

 private:
  // The bytes of a row of so many pixels, with its filter's number.
  size_t row_bytes(size_t pixels) const {
    constexpr size_t kSamples[] = {1, 0, 3, 1, 2, 0, 4};
    return 1 + (pixels * kSamples[color] * static_cast<size_t>(depth) + 7) / 8;
  }
  std::vector<size_t> rows() const {
    std::vector<size_t> out;
    if (!interlaced) return std::vector<size_t>(height, row_bytes(width));
    constexpr size_t kX[] = {0, 4, 0, 2, 0, 1, 0}, kY[] = {0, 0, 4, 0, 2, 0, 1},
                     kStepX[] = {8, 8, 4, 4, 2, 2, 1}, kStepY[] = {8, 8, 8, 4, 4, 2, 2};
    for (size_t pass = 0; pass < 7; ++pass)
      for (size_t y = kY[pass]; y < height && kX[pass] < width; y += kStepY[pass])
        out.push_back(row_bytes((width - kX[pass] + kStepX[pass] - 1) / kStepX[pass]));
    return out;
  }
  std::string compressed(uint32_t seed) const {
    z_stream z{};
    REQUIRE(deflateInit(&z, level) == Z_OK);
    std::string out;
    const auto add = [&](std::string from, int flush) {
      z.next_in = reinterpret_cast<Bytef*>(from.data());
      z.avail_in = static_cast<uInt>(from.size());
      do {
        std::string piece(4096, '\0');
        z.next_out = reinterpret_cast<Bytef*>(piece.data());
        z.avail_out = static_cast<uInt>(piece.size());
        deflate(&z, flush);
        out += piece.substr(0, piece.size() - z.avail_out);
      } while (z.avail_out == 0);
    };
    for (const size_t row : rows()) {
      std::string one(row, '\0');
      for (size_t i = 1; seed != 0 && i < row; ++i)
        one[i] = static_cast<char>((seed = seed * 1664525 + 1013904223) >> 24);
      add(one, flushes ? Z_FULL_FLUSH : Z_NO_FLUSH);
    }
    add(std::string(surplus, '\0'), Z_FINISH);
    deflateEnd(&z);
    return out;
  }
};

TEST_CASE("PNG files of noise are read, however their data are cut into chunks") {
  if (skip_without(reads_png(), "libpng")) return;
  constexpr std::pair<int, int> kKinds[] = {{0, 1}, {0, 8}, {0, 16}, {2, 8}, {2, 16},
                                            {3, 4}, {4, 8}, {4, 16}, {6, 8}, {6, 16}};
  for (const auto& [color, depth] : kKinds)
    for (const auto& [width, height] :
         {std::pair<size_t, size_t>{1, 1}, {1, 9}, {5, 1}, {3, 2}, {33, 47}, {64, 64}})
      for (const bool interlaced : {false, true})
        for (const size_t chunk : {size_t{1}, size_t{777}, size_t{1} << 20})
          for (const int level : {0, 6}) {
            const PngFile file{.width = width,
                               .height = height,
                               .depth = depth,
                               .color = color,
                               .interlaced = interlaced,
                               .level = level,
                               .chunk = chunk,
                               .flushes = level > 0};
            const std::string about = fmt::format("color {}, depth {}, {} x {}, chunks of {}",
                                                  color, depth, width, height, chunk);
            CAPTURE(about);
            Image image;
            CHECK(data_error([&] { image = decoded(file.bytes(1)); }).empty());
            CHECK(image.width == static_cast<int64_t>(file.width));
          }
  // Noise of a million pixels.
  const PngFile large{.width = 1000, .height = 1000, .depth = 16, .color = 6, .level = 1};
  CHECK(decoded(large.bytes(1)).height == 1000);
}

TEST_CASE("PNG data that go on after the last row are ignored, as by Pillow") {
  if (skip_without(reads_png(), "libpng")) return;
  CHECK(decoded(PngFile{}.bytes(0)).width == 10);
  for (const size_t surplus : {size_t{1}, size_t{100000}, size_t{64} << 20})
    CHECK(decoded(PngFile{.surplus = surplus}.bytes(0)).width == 10);
  // They are not decompressed: most of them may be missing.
  CHECK(decoded(PngFile{.surplus = size_t{64} << 20}.bytes(0).substr(0, 40000)).width == 10);
}

// Little-endian.
std::string number(size_t value, size_t bytes) {
  std::string out;
  for (size_t i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i));
  return out;
}

TEST_CASE("images of one value may be as large as Pillow reads them") {
  if (skip_without(reads_png() && reads_tiff(), "libpng and libtiff")) return;
  // A white page by CCITT group 4: a bit for each row.
  const size_t rows = 7016, bytes = rows / 8;
  std::string page = std::string("II*\0", 4) + number(8 + bytes, 4) + std::string(bytes, '\xff');
  page += number(8, 2);
  for (const auto& [tag, value] : std::vector<std::pair<size_t, size_t>>{{256, 4960},
                                                                         {257, rows},
                                                                         {259, 4},
                                                                         {262, 0},
                                                                         {273, 8},
                                                                         {277, 1},
                                                                         {278, rows},
                                                                         {279, bytes}})
    page += number(tag, 2) + number(4, 2) + number(1, 4) + number(value, 4);
  const Image white = decoded(page + number(0, 4));
  CHECK(white.width == 4960);
  CHECK(white.pixels == std::vector<uint8_t>(white.pixels.size(), 255));
  CHECK(decoded(PngFile{.width = 6000, .height = 6000, .depth = 1}.bytes(0)).width == 6000);
  CHECK(
      data_error([] { decoded(PngFile{.width = 15000, .height = 15000, .depth = 1}.bytes(0)); }) ==
      "x.img has 15000 x 15000 pixels, but images of at most 178956970 pixels are read, as by "
      "Pillow; make it smaller, or remove it");
}

// Whether this build reads the files of a subfolder of image_kinds.
bool reads(const std::string& kind) {
  return (kind != "webp" || reads_webp()) && (kind != "tiff" || reads_tiff());
}

std::vector<std::string> files_of(const std::string& kind) {
  std::vector<std::string> out;
  for (const auto& entry : std::filesystem::directory_iterator(kKinds + "/" + kind))
    out.push_back(entry.path().string());
  std::ranges::sort(out);
  return out;
}

TEST_CASE("BMP, PNM, WebP and TIFF files have PIL's pixels") {
  const SafeTensors expected = SafeTensors::read(test_file("fixtures/image_kinds.safetensors"));
  for (const std::string kind : {"bmp", "pnm", "webp", "tiff"}) {
    if (skip_without(reads(kind), "lib" + kind)) continue;
    for (const std::string& path : files_of(kind)) {
      CAPTURE(path);
      CHECK(is_image_ending(std::filesystem::path(path).extension().string()));
      const SafeTensors::Entry* pixels =
          expected.find(kind + "/" + std::filesystem::path(path).filename().string());
      REQUIRE(pixels);
      const Image image = decoded(read_file(path));
      REQUIRE(pixels->desc == TensorDesc{DType::u8, {image.height, image.width, 3}});
      CHECK(std::equal(image.pixels.begin(), image.pixels.end(),
                       reinterpret_cast<const uint8_t*>(pixels->data)));
    }
  }
}

TEST_CASE("the size in the header of a BMP, PNM or WebP file, or of its beginning") {
  const SafeTensors expected = SafeTensors::read(test_file("fixtures/image_kinds.safetensors"));
  for (const SafeTensors::Entry& entry : expected.entries()) {
    CAPTURE(entry.name);
    const std::string bytes = read_file(kKinds + "/" + entry.name);
    const std::span<const std::byte> all = std::as_bytes(std::span(bytes));
    const ImageSize right{entry.desc.shape[0], entry.desc.shape[1]};
    CHECK(image_size(all) ==
          (entry.name.starts_with("tiff/") ? std::nullopt : std::optional(right)));
    size_t wrong = 0;
    for (size_t cut = 0; cut < std::min<size_t>(bytes.size(), 100); ++cut)
      wrong += image_size(all.first(cut)).value_or(right) != right;
    CHECK(wrong == 0);
  }
  const auto of = [](std::string bytes) {
    bytes.resize(40, ' ');
    return image_size(std::as_bytes(std::span(bytes)));
  };
  CHECK(of("P6 3 4 ") == ImageSize{4, 3});
  CHECK_FALSE(of("P6 0 4 "));
  CHECK_FALSE(of("P6 99999 99999 "));
  CHECK_FALSE(of("P6 3 x "));
  CHECK_FALSE(of("P7 3 4 "));
  CHECK_FALSE(of("BM"));
  CHECK_FALSE(of("RIFF    WEBPICCP"));
}

TEST_CASE("BMP, PNM, WebP and TIFF files that are damaged, cut short or lie are refused by name") {
  const auto why = [](const std::string& bytes) { return data_error([&] { decoded(bytes); }); };
  for (const std::string kind : {"bmp", "pnm", "webp", "tiff"}) {
    if (skip_without(reads(kind), "lib" + kind)) continue;
    for (const std::string& path : files_of(kind)) {
      CAPTURE(path);
      const std::string bytes = read_file(path);
      // BMP's last row may lack its padding, and TIFF's directory the offset of the next page.
      const size_t end = bytes.size() - (kind == "bmp" || kind == "tiff" ? 4 : 0);
      for (size_t n = 3; n < end; n += 1 + bytes.size() / 50) {
        const std::string reason = why(bytes.substr(0, n));
        const bool refused = has(reason, "x.img cannot be read as ") ||
                             has(reason, "x.img is not a ") || has(reason, "x.img is a ");
        // The last number in text may be shorter, and the second page may be missing.
        const bool may_end = has(path, "text") || has(path, "two-pages");
        CHECK_MESSAGE((refused || may_end), n, ": ", reason);
      }
      for (size_t at = 2; at < bytes.size(); at += 1 + bytes.size() / 200) {
        std::string wrong = bytes;
        wrong[at] = static_cast<char>(~wrong[at]);
        why(wrong);
      }
    }
  }
}

// Why a file is refused, which takes little memory.
std::string refusal(const std::string& bytes) {
  std::string out;
  CHECK(peak_growth([&] { out = data_error([&] { decoded(bytes); }); }) < kHostileBytes);
  return out;
}

TEST_CASE("BMP and PNM: sizes and variants that are refused") {
  const std::string bmp = read_file(kKinds + "/bmp/rgb24.bmp");
  const auto changed = [&](size_t at, const std::string& to) {
    return refusal(std::string(bmp).replace(at, to.size(), to));
  };
  CHECK(refusal(bmp).empty());
  CHECK(has(changed(18, std::string("\0\0\0\0", 4)), "its header announces 0 x 5 pixels"));
  CHECK(has(changed(18, "\xff\xff\xff\x7f"), "its header announces 2147483647 x 5 pixels"));
  CHECK(
      has(changed(18, std::string("\x0a\0", 2)), "cannot be read as BMP: the file ends too early"));
  CHECK(has(changed(14, "\x10"), "its header has an unknown size"));
  CHECK(has(changed(10, "\xff\xff\xff\xff"), "the file ends too early"));
  CHECK(changed(30, "\x01") ==
        "x.img is a BMP image with run-length compression, which dptrain does not read; convert it "
        "to a PNG with 8 bits a channel");
  CHECK(has(changed(30, "\x05"), "with compression 5"));
  CHECK(has(changed(30, "\x03"), "with unusual bit fields"));
  CHECK(has(changed(28, "\x02"), "with 2 bits per pixel"));
  CHECK(
      has(refusal("P4\n8 1\n\xff"), "is a PBM image of single bits, which dptrain does not read"));
  CHECK(has(refusal("P5\n0 1\n255\n\xff"), "its header announces 0 x 1 pixels"));
  CHECK(has(refusal("P6\n9999999999 9999999999\n255\n\xff"), "its header announces 9999999999 x "));
  CHECK(has(refusal("P5\n2 1\n255\n\xff"), "cannot be read as PGM: the file ends too early"));
  CHECK(has(refusal("P5\n2 1\n65536\n\xff\xff"), "largest value (1 to 65535)"));
  CHECK(has(refusal("P5\n2 1\n0\n\xff\xff"), "largest value (1 to 65535)"));
  CHECK(has(refusal("P2\n2 1\n9\n9 10\n"), "its sample 1 is missing, or not a number up to 9"));
  CHECK(has(refusal("P3\n1 1\n9\n9 -1 2\n"), "its sample 1 is missing"));
  CHECK(has(refusal("P2\n2 1\n9\n9     "), "its sample 1 is missing"));
  CHECK(refusal("P2\n2 1\n9\n9 1").empty());
}

TEST_CASE("WebP and TIFF: sizes and variants that are refused") {
  if (skip_without(reads_webp() && reads_tiff(), "libwebp and libtiff")) return;
  std::string webp = read_file(kKinds + "/webp/lossless.webp");
  webp.replace(21, 4, "\xff\xff\xff\x0f");  // 14 bits each
  CHECK(has(refusal(webp), "cannot be read as WebP: its header announces 16384 x 16384 pixels"));
  CHECK(has(refusal(read_file(kKinds + "/webp/lossy.webp").substr(0, 100)),
            "cannot be read as WebP: the file ends too early"));
  // Entries of 12 bytes begin at 10: tag, type, count, value.
  const std::string tiff = read_file(kKinds + "/tiff/grey2.tif");
  const auto changed = [&](int tag, const std::string& to) {
    std::string bytes = tiff;
    for (size_t at = 10; at + 12 < bytes.size(); at += 12)
      if (static_cast<uint8_t>(bytes[at]) + 256 * static_cast<uint8_t>(bytes[at + 1]) == tag) {
        bytes.replace(at + 8, to.size(), to);
        return refusal(bytes);
      }
    return std::string("no such tag");
  };
  CHECK(changed(258, "\x02").empty());
  CHECK(changed(258, "\x10") ==
        "x.img is a TIFF image with 16-bit samples, which dptrain does not read; save it with 8 "
        "bits: PIL.Image.open(FILE).point(lambda v: v / 257).convert(\"L\").save(\"NEW.png\")");
  CHECK(has(changed(256, std::string("\0\0", 2)), "cannot be read as TIFF: "));
  CHECK(has(changed(257, "\xff\xff"), "cannot be read as TIFF: "));
  CHECK(has(changed(259, "\x50\xc3"), "with compression 50000"));
  CHECK(has(changed(262, "\x05"), "in CMYK colors"));
  CHECK(has(changed(277, "\x04"),
            "with 4 samples per pixel, which dptrain does not read; save such images as one array "
            "by numpy.save, [N, channels, height, width], and train with the dataset `npy`"));
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
