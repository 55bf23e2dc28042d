#include <sys/stat.h>

#include "../peak_growth.h"
#include "base/units.h"
#include "data/readers/image.h"
#include "loading.h"
#include "paths.h"
#include "skip.h"

namespace dpt {
namespace {

const std::string kImages = test_file("fixtures/images");

std::string settings(const Folder& folder, const std::string& more = ", crop: 4") {
  return "{path: " + folder.path() + more + "}";
}

TEST_CASE("image_folder: classes and files in torchvision's order, whatever is beside them") {
  const Folder folder;
  for (const char* file : {"b/2.webp", "b/10.JPG", "a/z.ppm", "a/sub/a.png", "a/notes.txt",
                           "a-b/x.tif", "C/x.bmp", "a/x.gif", "readme.md"})
    folder.write(file, "");
  const Dataset d = load("image_folder", settings(folder));
  CHECK(d.inputs.desc == TensorDesc{DType::u8, {6, 3, 4, 4}});
  CHECK(d.reader != nullptr);
  CHECK(d.classes == 4);  // C, a, a-b, b
  CHECK(all_of<int32_t>(d.targets) == std::vector<int32_t>{0, 1, 1, 2, 3, 3});
  CHECK(d.description == "image_folder: 6 x [3, 4, 4] u8, 4 classes, from " + folder.path());
  CHECK(d.warnings ==
        std::vector{folder.path() +
                    ": 2 files are left out, as their types are not read: 1 .gif, 1 .txt"});
}

std::string chunk(const std::string& type, const std::string& data) {
  const std::string summed = type + data;
  const auto* bytes = reinterpret_cast<const Bytef*>(summed.data());
  return big_endian(data.size(), 4) + summed +
         big_endian(crc32(0, bytes, static_cast<uInt>(summed.size())), 4);
}

// A grey PNG of black pixels. more: chunks after the header.
std::string black_png(uint32_t width, uint32_t height, const std::string& more = "") {
  const std::string rows((size_t{width} + 1) * height, '\0');
  uLongf size = compressBound(rows.size());
  std::string packed(size, '\0');
  REQUIRE(compress(reinterpret_cast<Bytef*>(packed.data()), &size,
                   reinterpret_cast<const Bytef*>(rows.data()), rows.size()) == Z_OK);
  packed.resize(size);
  return "\x89PNG\r\n\x1a\n" +
         chunk("IHDR",
               big_endian(width, 4) + big_endian(height, 4) + std::string("\x08\0\0\0\0", 5)) +
         more + chunk("IDAT", packed) + chunk("IEND", "");
}

TEST_CASE("image_folder: an image that takes gigabytes to resize is refused") {
  if (skip_without(reads_png(), "libpng")) return;
  const Folder folder;
  const auto read = [&](const std::string& more) {
    const Dataset d = load("image_folder", settings(folder, more));
    std::vector<std::byte> out(static_cast<size_t>(d.inputs.sample().elements()));
    return data_error([&] { d.reader->read(0, out); });
  };
  std::string why;
  const std::string image = folder.write("a/x.png", black_png(20000, 1));
  CHECK(peak_growth([&] { why = read(", resize: 256, crop: 224"); }) < kHostileBytes);
  CHECK(why ==
        image +
            " has 20000 x 1 pixels; resizing it to 5120000 x 256 takes 3750 MiB: remove it, or "
            "crop it first");
  CHECK(read(", crop: 224") == "");
  CHECK(read(", resize: [224, 224]") == "");
  CHECK(read(", resize: 16, crop: 16") == "");
  folder.write("a/x.png", black_png(1, 100000));
  CHECK(has(read(", resize: 256, crop: 224"),
            "has 1 x 100000 pixels; resizing it to 256 x 25600000"));
  CHECK(has(read(", resize: [224, 224]"), "has 1 x 100000 pixels; resizing it to 224 x 224"));
  CHECK(read(", crop: 224") == "");
}

TEST_CASE("image_folder: a file too large for an image, and special files, are refused") {
  const Folder folder;
  const auto why = [&] {
    const Dataset d = load("image_folder", settings(folder));
    std::vector<std::byte> out(48);
    return data_error([&] { d.reader->read(0, out); });
  };
  std::filesystem::resize_file(folder.write("a/x.png", ""), 8 * kGiB);
  CHECK(has(why(), "a/x.png has 8589934592 bytes, and an image may have at most 64 MiB"));
  std::filesystem::remove(folder.file("a/x.png"));
  REQUIRE(::mkfifo(folder.file("a/x.png").c_str(), 0600) == 0);
  CHECK(has(why(), "a/x.png is a pipe, not a regular file"));
}

TEST_CASE("image_folder: links that lead to a folder twice are refused, others are followed") {
  const Folder folder, elsewhere;
  const auto why = [&] { return data_error([&] { load("image_folder", settings(folder)); }); };
  const auto link = [&](const std::string& to, const std::string& name) {
    std::filesystem::create_directory_symlink(to, folder.file(name));
  };
  folder.write("a/x.png", "");
  elsewhere.write("y.png", "");
  link(elsewhere.path(), "a/there");
  link(elsewhere.path(), "b");  // once in each class
  CHECK(load("image_folder", settings(folder)).size() == 3);
  link(".", "a/1");
  link(".", "a/2");
  CHECK(why() == folder.file("a") + " and " + folder.file("a/1") +
                     " are the same folder, through a symbolic link; remove the link");
  std::filesystem::remove(folder.file("a/1"));
  std::filesystem::remove(folder.file("a/2"));
  // No loop, but twice as many folders with each level.
  for (int i = 0; i < 30; ++i) {
    const std::string level = "a/level" + std::to_string(i);
    std::filesystem::create_directory(folder.file(level));
    for (const char* const name : {"/1", "/2"})
      link("../level" + std::to_string(i + 1), level + name);
  }
  folder.write("a/level30/x.png", "");
  CHECK(has(why(), "are the same folder, through a symbolic link"));
}

TEST_CASE("image_folder: without a crop all images have one size, or two files are named") {
  if (skip_without(reads_png(), "libpng")) return;
  const Folder folder;
  folder.write("a/1.png", black_png(6, 5));
  folder.write("a/2.png", black_png(6, 5));
  folder.write("b/3.png", black_png(6, 5));
  const auto of = [&](const std::string& more) {
    return load("image_folder", settings(folder, more)).inputs.sample();
  };
  const auto why = [&](const std::string& more) { return data_error([&] { of(more); }); };
  CHECK(of("") == Shape{3, 5, 6});
  CHECK(of(", resize: 10") == Shape{3, 10, 12});
  const DatasetType& type = dataset_type("image_folder");
  folder.write("b/4.png", black_png(12, 10));
  CHECK(why("") == folder.file("a/1.png") + " has 6 x 5 pixels, but " + folder.file("b/4.png") +
                       " has 12 x 10: all samples must have one size. Give height and width in "
                       "`resize`, or `crop`");
  CHECK(of(", resize: 10") == Shape{3, 10, 12});  // both
  folder.write("b/5.png", black_png(5, 6));
  CHECK(has(why(", resize: 10"), "1.png has 12 x 10 pixels after `resize`, but "));
  CHECK(of(", crop: 4") == Shape{3, 4, 4});
  // For predictions, samples have the size of the training data.
  const auto reader =
      type.image_reader(settings_of(type, settings(folder, "")),
                        {folder.file("a/1.png"), folder.file("b/4.png")}, Shape{3, 5, 6});
  std::vector<std::byte> out(90);
  reader->read(0, out);
  CHECK(has(data_error([&] { reader->read(1, out); }),
            "4.png has 12 x 10 pixels, but the samples of this run have 6 x 5; resize it"));
  folder.write("b/6.png", "no image");
  std::filesystem::remove(folder.file("b/5.png"));
  CHECK(has(why(", resize: 10"), "b/6.png is not a JPEG, PNG, BMP,"));
}

TEST_CASE("image_folder: images that EXIF data turns") {
  if (skip_without(reads_png(), "libpng")) return;
  const Folder folder;
  // One field: the orientation (0x112), a short (3), is 6: the left side is the top.
  const std::string exif("MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0", 26);
  folder.write("a/1.png", black_png(6, 4));
  folder.write("a/2.png", black_png(4, 6, chunk("eXIf", exif)));
  const auto read = [&](const std::string& more) {
    const Dataset d = load("image_folder", settings(folder, more));
    std::vector<std::byte> out(static_cast<size_t>(d.inputs.sample().elements()));
    for (const uint32_t row : {0U, 1U, 1U}) d.reader->read(row, out);
    return d.reader->remarks();
  };
  CHECK(has(data_error([&] { read(""); }), "all samples must have one size"));
  CHECK(read(", exif: true") == "");
  CHECK(load("image_folder", settings(folder, ", exif: true")).inputs.sample() == Shape{3, 4, 6});
  CHECK(has(read(", crop: 4"),
            "1 of the images that were read is to be turned, as its EXIF data "
            "says (" +
                folder.file("a/2.png") + "), but is read as stored"));
}

TEST_CASE("image_folder: images that cannot be read are left out, with on_error: skip") {
  if (skip_without(reads_png(), "libpng")) return;
  const Folder folder;
  folder.write("a/1.png", "no image");
  folder.write("a/2.png", black_png(4, 4));
  folder.write("b/3.png", black_png(4, 4));
  folder.write("b/4.png", black_png(4, 4).substr(0, 60));
  const Dataset d = load("image_folder", settings(folder, ", on_error: skip"));
  CHECK(d.size() == 2);
  CHECK(all_of<int32_t>(d.targets) == std::vector<int32_t>{0, 1});
  REQUIRE(d.warnings.size() == 2);
  CHECK(has(d.warnings[0], "left out: " + folder.file("a/1.png") + " is not a JPEG"));
  CHECK(has(d.warnings[1], "left out: " + folder.file("b/4.png") + " cannot be read as PNG"));
  std::vector<std::byte> out(48);
  d.reader->read(0, out);
  std::filesystem::remove(folder.file("b/3.png"));
  CHECK(has(data_error([&] { load("image_folder", settings(folder, ", on_error: skip")); }),
            "/b contains no image that can be read"));
}

TEST_CASE("image_folder: a separate validation set has the classes of the training set") {
  const Folder folder;
  const auto image = [&](const std::string& path) {
    std::filesystem::create_directories(std::filesystem::path(folder.file(path)).parent_path());
    folder.write(path, "P5 4 4 255\n" + std::string(16, 'x'));
  };
  for (const char* path : {"t/ape/1.pgm", "t/cat/1.pgm", "t/dog/1.pgm", "v/cat/1.pgm",
                           "v/dog/1.pgm", "w/Cat/1.pgm", "w/dog/1.pgm"})
    image(path);
  const Dataset train =
      load("image_folder", "{path: t, resize: 4, crop: 4}", Split::train, folder.path());
  const Dataset valid =
      load_validation("image_folder", "{path: v, resize: 4, crop: 4}", train, folder.path());
  CHECK(valid.classes == 3);
  CHECK(valid.class_names == train.class_names);
  CHECK(all_of<int32_t>(valid.targets) == std::vector<int32_t>{1, 2});
  CHECK(has(data_error([&] {
              load_validation("image_folder", "{path: w, resize: 4, crop: 4}", train,
                              folder.path());
            }),
            "has the class 'Cat', which the training set lacks; its classes are: ape, cat, dog"));
}

TEST_CASE("image_folder: a test set that lacks classes has the training set's numbers") {
  const Folder folder, test;
  for (const char* name : {"a/1.png", "b/1.png", "c/1.png"}) folder.write(name, "");
  for (const char* name : {"b/1.png", "c/1.png"}) test.write(name, "");
  const std::string keys = settings(folder, ", crop: 4, test_path: " + test.path());
  const Dataset d = load("image_folder", keys, Split::test);
  CHECK(all_of<int32_t>(d.targets) == std::vector<int32_t>{1, 2});
  CHECK(d.class_names == std::vector<std::string>{"a", "b", "c"});
  CHECK(d.classes == 3);
  CHECK(has(torch_data_of("image_folder", keys, Split::test),
            ", target_transform=[1, 2].__getitem__)"));
  CHECK_FALSE(has(torch_data_of("image_folder", keys), "target_transform"));
}

TEST_CASE("image_folder: what is wrong") {
  const Folder folder, test;
  const auto why = [&](const std::string& more = ", crop: 4", Split split = Split::train) {
    return data_error([&] { load("image_folder", settings(folder, more), split); });
  };
  CHECK(has(why(), "has no subfolders; put the images of each class into a subfolder of its own"));
  folder.write("a/x.txt", "");
  CHECK(has(
      why(),
      "/a contains no image (.jpg, .jpeg, .png, .bmp, .ppm, .pgm, .pnm, .webp, .tif or .tiff)"));
  folder.write("a/x.png", "");
  CHECK(why() == "");
  CHECK(has(why(", crop: 4", Split::test), "has no test split: write test_path"));
  test.write("b/x.png", "");
  CHECK(has(why(", crop: 4, test_path: " + test.path(), Split::test),
            "has the class 'b', which the training set lacks; its class is: a"));
  folder.write("c/1.gif", "");
  CHECK(has(why(), "), but files of types that are not read: 1 .gif"));
  folder.write("c/x.png", "");
  CHECK(has(data_error([&] { load("image_folder", "{path: /nowhere, crop: 4}"); }),
            "/nowhere cannot be read: No such file or directory"));
  const DatasetType& t = dataset_type("image_folder");
  CHECK(complaint_of(t, "{path: x}") == "");
  CHECK(complaint_of(t, "{path: x, resize: [4, 5]}") == "");
  CHECK(has(complaint_of(t, "{path: x, crop: [1, 2, 3]}"), "'crop' must be one number or two"));
  CHECK(has(complaint_of(t, "{path: x, crop: 0}"), "'crop' must be between 1 and 16384"));
  // Only when it is read:
  folder.write("a/x.png", "no image");
  const Dataset d = load("image_folder", settings(folder));
  std::vector<std::byte> out(48);
  CHECK(has(data_error([&] { d.reader->read(0, out); }), "a/x.png is not a JPEG, PNG, BMP,"));
}

}  // namespace
}  // namespace dpt
