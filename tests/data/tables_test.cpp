#include "data/tables.h"

#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>

#include "folder.h"

namespace dpt {
namespace {

template <class T>
Table table_of(DType type, const std::vector<T>& values) {
  NewTable t({type, {static_cast<int64_t>(values.size())}});
  std::ranges::copy(values, t.as<T>().begin());
  return std::move(t).done();
}

TEST_CASE("labels become classes and are checked") {
  int64_t classes = 0;
  const Table bytes = as_classes(table_of<uint8_t>(DType::u8, {0, 2, 1}), classes, "labels");
  CHECK(classes == 3);
  CHECK(values_of<int32_t>(bytes)[1] == 2);
  classes = 2;
  CHECK(data_error([&] {
          as_classes(table_of<uint8_t>(DType::u8, {0, 2, 1}), classes, "labels");
        }) ==
        "labels: the label of sample 1 (counted from 0) is 2, which is not one of the 2 classes "
        "0..1");
  classes = 0;
  CHECK(has(data_error([&] {
              as_classes(table_of<int32_t>(DType::i32, {0, -1}), classes, "labels");
            }),
            "sample 1 (counted from 0) is -1"));
  CHECK(has(data_error([&] { as_classes(table_of<float>(DType::f32, {0}), classes, "labels"); }),
            "does not hold labels: it is [1] f32"));
}

TEST_CASE("a table that no memory holds is refused") {
  CHECK(error_of(Fault::memory, [] {
          NewTable({DType::f32, {int64_t{1} << 40, int64_t{1} << 40}});
        }) != "");
}

TEST_CASE("files of a named set are found together, with _ or -, plain or .gz") {
  const Folder folder;
  folder.write("datasets/a_set/x", "");  // y is missing here
  folder.write("datasets/a-set/x.gz", "");
  folder.write("datasets/a-set/y", "");
  const std::vector<std::string> found = find_files("a_set", "", folder.path(), {"x", "y"});
  CHECK(found == std::vector{folder.file("datasets/a-set/x.gz"), folder.file("datasets/a-set/y")});
  // Also beside the folder of the spec, and where the spec says.
  CHECK(find_files("a_set", "", folder.file("configs"), {"x", "y"}) == found);
  CHECK(find_files("a_set", folder.file("datasets/a-set"), "", {"x", "y"}) == found);
  CHECK(find_files("a_set", folder.file("datasets"), "", {"x", "y"}) == found);
}

TEST_CASE("a folder may have the set's name with _, with - or with neither") {
  for (const std::string name : {"a_set", "a-set", "aset"}) {
    const Folder folder;
    const std::string wanted = folder.write("datasets/" + name + "/x", "");
    CHECK(find_files("a_set", "", folder.path(), {"x"}) == std::vector{wanted});
  }
}

TEST_CASE("samples that overlap are made apart") {
  const Table apart = reshaped(table_of<int32_t>(DType::i32, {1, 2, 3, 4}), {2, 2});
  CHECK(without_overlap(apart).data == apart.data);
  const Table windows{{DType::i32, {3, 2}}, apart.data, 1};
  CHECK(windows.stored() == 4);
  const Table copy = without_overlap(windows);
  CHECK(copy.stride == 0);
  const auto values = values_of<int32_t>(copy);
  CHECK(std::vector(values.begin(), values.end()) == std::vector<int32_t>{1, 2, 2, 3, 3, 4});
}

TEST_CASE("DPTRAIN_DATA goes before datasets/") {
  const Folder data, folder;
  const char* old = std::getenv("DPTRAIN_DATA");
  const std::string before = old != nullptr ? old : "";
  ::setenv("DPTRAIN_DATA", data.path().c_str(), 1);
  const std::string wanted = data.write("a_set/x", "");
  folder.write("datasets/a_set/x", "");
  CHECK(find_files("a_set", "", folder.path(), {"x"}) == std::vector{wanted});
  if (old != nullptr)
    ::setenv("DPTRAIN_DATA", before.c_str(), 1);
  else
    ::unsetenv("DPTRAIN_DATA");
}

TEST_CASE("labels that the loss passes over are no classes") {
  int64_t classes = 0;
  const Table labels =
      as_classes(table_of<int32_t>(DType::i32, {-100, 2, -100}), classes, "labels", -100);
  CHECK(classes == 3);
  CHECK(values_of<int32_t>(labels)[0] == -100);
  classes = 0;
  as_classes(table_of<uint8_t>(DType::u8, {255, 1}), classes, "labels", 255);
  CHECK(classes == 2);
  CHECK(has(
      data_error([&] { as_classes(table_of<int32_t>(DType::i32, {-1}), classes, "labels", -100); }),
      "is -1, which is not one of the 2 classes"));
}

TEST_CASE("a label beyond the classes: a count of classes, or a mark of targets to leave out") {
  const auto hint = [](const std::vector<int32_t>& labels, int64_t classes, ClassesKey key) {
    const std::string all = data_error([&] {
      as_classes(table_of<int32_t>(DType::i32, labels), classes, "labels", -100, 1, key);
    });
    const size_t at = all.find(';');
    return at == all.npos ? "" : all.substr(at + 2);
  };
  using enum ClassesKey;
  CHECK(hint({1, 2, 3, -100}, 3, automatic) ==
        "the labels are 1..3, but classes count from 0: write `classes: auto`");
  CHECK(hint({1, 2, 3}, 3, number) ==
        "the labels are 1..3, but classes count from 0: write `classes: 4`, or subtract 1 from all "
        "labels");
  CHECK(hint({1, 255}, 255, automatic) ==
        "the labels are 1..255, but classes count from 0: write `classes: auto`");
  CHECK(hint({0, 4, 3}, 3, automatic) == "if it is a class, write `classes: 5` or `classes: auto`");
  CHECK(hint({0, 3}, 3, number) == "if it is a class, write `classes: 4`");
  CHECK(hint({0, 3}, 3, none).empty());
  for (const int32_t mark : {-1, 255, 99})
    for (const ClassesKey key : {none, number, automatic})
      CHECK(hint({0, 2, mark}, 3, key) ==
            fmt::format("if it marks targets to leave out, set `ignore_index: {}` of the loss",
                        mark));
  CHECK(hint({0, -1, -2}, 3, automatic).empty());
}

TEST_CASE("a set that is not there: every folder tried, and what to do") {
  const Folder folder;
  const std::string why = data_error([&] { find_files("a_set", "", folder.path(), {"x", "y"}); });
  CHECK(has(why, "the files of a_set were not found: x and y"));
  CHECK(has(why, folder.file("datasets/a_set") + "\n"));
  CHECK(has(why, folder.file("datasets/a-set") + "\n"));
  const std::string parent = std::filesystem::path(folder.path()).parent_path().string();
  CHECK(has(why, parent + "/datasets/a_set"));
  CHECK_FALSE(has(why, parent + "/shared"));
  CHECK(has(why, "tools/fetch_data.sh a_set"));
  CHECK(has(why, "synthetic_images"));
}

}  // namespace
}  // namespace dpt
