#include "data/readers/image.h"
#include "loading.h"
#include "paths.h"

namespace dpt {
namespace {

// A PPM of one color, which every build reads.
std::string ppm(int width, int height, char value) {
  return "P6\n" + std::to_string(width) + " " + std::to_string(height) + "\n255\n" +
         std::string(static_cast<size_t>(width) * static_cast<size_t>(height) * 3, value);
}

void write_images(const Folder& folder) {
  for (const char* name : {"a", "b", "c", "d"})
    folder.write(std::string("images/") + name + ".ppm", ppm(2, 2, name[0]));
}

std::vector<uint8_t> first_bytes(const Dataset& d) {
  std::vector<uint8_t> out;
  std::vector<std::byte> sample(d.inputs.desc.shape.tail(1).elements());
  for (uint32_t i = 0; i < d.size(); ++i) {
    d.reader->read(i, sample);
    out.push_back(std::to_integer<uint8_t>(sample[0]));
  }
  return out;
}

std::string of_images(const Folder& folder, const std::string& more = "") {
  return "{path: " + folder.file("t.csv") + ", folder: " + folder.file("images") + more + "}";
}

std::string refusal_of(const Folder& folder, const std::string& text, const std::string& more) {
  folder.write("t.csv", text);
  return data_error([&] { load("image_table", of_images(folder, more)); });
}

TEST_CASE("image_table: classes in the order of the lines") {
  const Folder folder;
  write_images(folder);
  folder.write("t.csv", "name,size,kind\nc.ppm,1,dog\na.ppm,NA,cat\nd.ppm,3,dog\n");
  const Dataset d = load("image_table", of_images(folder, ", targets: kind, classes: auto"));
  CHECK(d.inputs.desc == TensorDesc{DType::u8, {3, 3, 2, 2}});
  CHECK(first_bytes(d) == std::vector<uint8_t>{'c', 'a', 'd'});
  CHECK(d.class_names == std::vector<std::string>{"cat", "dog"});
  CHECK(all_of<int32_t>(d.targets) == std::vector<int32_t>{1, 0, 1});
  CHECK(d.columns.targets == std::vector<size_t>{2});
  CHECK(d.description == "image_table: 3 x [3, 2, 2] u8, 2 classes, from " + folder.file("t.csv") +
                             "; its first line is the header: name, size, kind");
}

TEST_CASE("image_table: labels, and names without endings that look like numbers") {
  const Folder folder;
  folder.write("01.ppm", ppm(2, 2, 'x'));
  folder.write("1.ppm", ppm(2, 2, 'y'));
  folder.write("t.csv", "day,rain,id\nyes,no,01\nno,yes,1\n");
  const DatasetType& type = dataset_type("image_table");
  const Dataset d = type.load(settings_of(type,
                                          "{path: " + folder.file("t.csv") +
                                              ", image: id, ending: .ppm, targets: [day, rain]}",
                                          ""),
                              {.binary_labels = true});
  CHECK(first_bytes(d) == std::vector<uint8_t>{'x', 'y'});
  CHECK(all_of<float>(d.targets) == std::vector<float>{1, 0, 0, 1});
}

TEST_CASE("image_table: other sets have the training set's columns and classes") {
  const Folder folder;
  write_images(folder);
  folder.write("t.csv", "name,kind\nc.ppm,dog\na.ppm,cat\n");
  folder.write("test.csv", "kind,name\ndog,b.ppm\n");
  const std::string yaml =
      of_images(folder, ", test_path: " + folder.file("test.csv") + ", image: name, targets: kind" +
                            ", classes: auto");
  const Dataset test = load("image_table", yaml, Split::test);
  CHECK(first_bytes(test) == std::vector<uint8_t>{'b'});
  CHECK(all_of<int32_t>(test.targets) == std::vector<int32_t>{1});
  CHECK(test.class_names == std::vector<std::string>{"cat", "dog"});
  CHECK_THROWS_AS(load("image_table", of_images(folder), Split::test), NoTestSplit);
}

TEST_CASE("image_table: images that are missing, damaged or of different sizes") {
  const Folder folder;
  write_images(folder);
  folder.write("images/e.ppm", "P6");
  folder.write("images/f.ppm", ppm(3, 2, 'f'));
  const std::string kinds = ", targets: 1, classes: 2";
  CHECK(has(refusal_of(folder, "a.ppm,0\nz.ppm,1\n", kinds),
            "t.csv: image " + folder.file("images/z.ppm") +
                " of sample 1 (counted from 0) does not exist; check `folder` and `ending`, or "));
  CHECK(has(refusal_of(folder, "a.ppm,0\nf.ppm,1\n", kinds), "all samples must have one size"));
  CHECK(has(refusal_of(folder, "a.ppm,0\n,1\n", kinds), "t.csv:2:1: column '0' is empty"));
  CHECK(has(refusal_of(folder, "e.ppm,0\nz.ppm,1\n", kinds + ", on_error: skip"),
            "none of the images that " + folder.file("t.csv") + " names can be read"));
  folder.write("t.csv", "e.ppm,0\na.ppm,1\nz.ppm,0\nb.ppm,1\n");
  const Dataset d = load("image_table", of_images(folder, kinds + ", on_error: skip"));
  CHECK(first_bytes(d) == std::vector<uint8_t>{'a', 'b'});
  CHECK(all_of<int32_t>(d.targets) == std::vector<int32_t>{1, 1});
  REQUIRE(d.warnings.size() == 2);
  CHECK(has(d.warnings[0], "left out: " + folder.file("images/e.ppm")));
  folder.write("t.csv", "a.ppm,0\n,1\nb.ppm,1\n");
  CHECK(load("image_table", of_images(folder, kinds + ", missing: drop")).size() == 2);
}

}  // namespace
}  // namespace dpt
