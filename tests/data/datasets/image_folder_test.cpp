#include "loading.h"
#include "places.h"

namespace dpt {
namespace {

const std::string kImages = test_file("fixtures/images");

std::string settings(const Folder& folder, const std::string& more = ", crop: 4") {
  return "{path: " + folder.path() + more + "}";
}

TEST_CASE("image_folder: classes and files in torchvision's order, whatever is beside them") {
  const Folder folder;
  for (const char* file : {"b/2.png", "b/10.JPG", "a/z.jpeg", "a/sub/a.png", "a/notes.txt",
                           "a-b/x.jpg", "C/x.jpg", "readme.md"})
    folder.write(file, "");
  const Dataset d = load("image_folder", settings(folder));
  CHECK(d.inputs.desc == TensorDesc{DType::u8, {6, 3, 4, 4}});
  CHECK(d.reader != nullptr);
  CHECK(d.classes == 4);  // C, a, a-b, b
  CHECK(all_of<int32_t>(d.targets) == std::vector<int32_t>{0, 1, 1, 2, 3, 3});
  CHECK(d.description == "image_folder: 6 x [3, 4, 4] u8, 4 classes, from " + folder.path());
}

TEST_CASE("image_folder: what is wrong") {
  const Folder folder, test;
  const auto why = [&](const std::string& more = ", crop: 4", Split split = Split::train) {
    return data_error([&] { load("image_folder", settings(folder, more), split); });
  };
  CHECK(has(why(), "holds no folders: each class must have one of its own"));
  folder.write("a/x.txt", "");
  CHECK(has(why(), "/a holds no image: .jpg, .jpeg and .png are read"));
  folder.write("a/x.png", "");
  folder.write("a/y.webp", "");
  CHECK(has(why(), "y.webp is an image that dptrain can't read, only JPEG and PNG are"));
  std::filesystem::remove(folder.file("a/y.webp"));
  CHECK(why() == "");
  CHECK(has(why(", crop: 4", Split::test), "has no test split: write test_path"));
  test.write("b/x.png", "");
  CHECK(has(why(", crop: 4, test_path: " + test.path(), Split::test), "has other classes than"));
  CHECK(has(data_error([&] { load("image_folder", "{path: /nowhere, crop: 4}"); }),
            "/nowhere can't be read: No such file or directory"));
  const DatasetType& t = dataset_type("image_folder");
  CHECK(has(complaint_of(t, "{path: x}"), "image_folder needs 'crop', or 'resize' with height"));
  CHECK(has(complaint_of(t, "{path: x, resize: 4}"), "image_folder needs 'crop'"));
  CHECK(complaint_of(t, "{path: x, resize: [4, 5]}") == "");
  CHECK(has(complaint_of(t, "{path: x, crop: [1, 2, 3]}"), "'crop' must be one number or two"));
  CHECK(has(complaint_of(t, "{path: x, crop: 0}"), "'crop' must be between 1 and 16384"));
  // Only when it is read:
  folder.write("a/x.png", "no image");
  const Dataset d = load("image_folder", settings(folder));
  std::vector<std::byte> out(48);
  CHECK(has(data_error([&] { d.reader->read(0, out); }),
            "a/x.png is neither a JPEG nor a PNG image"));
}

}  // namespace
}  // namespace dpt
