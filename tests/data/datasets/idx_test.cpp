#include "../peak_growth.h"
#include "loading.h"

namespace dpt {
namespace {

const std::string kFiles = "{images: i, labels: l, test_images: ti, test_labels: tl}";

void write(const Folder& folder) {
  folder.write("i", idx_bytes({3, 4, 5}));
  folder.write("l", idx_header(0x08, {3}) + std::string("\x00\x03\x01", 3));
  folder.write("ti", idx_bytes({2, 4, 5}));
  folder.write("tl", idx_header(0x0c, {2}) + big_endian(1, 4) + big_endian(0, 4));
}

TEST_CASE(
    "idx: paths from the spec's folder, a channel for images, classes of the training labels") {
  const Folder folder;
  write(folder);
  const Dataset train = load("idx", kFiles, Split::train, folder.path());
  CHECK(train.inputs.desc == TensorDesc{DType::u8, {3, 1, 4, 5}});
  CHECK(train.classes == 4);
  const Dataset test = load("idx", kFiles, Split::test, folder.path());
  CHECK(test.classes == 4);
  CHECK(all_of<int32_t>(test.targets) == std::vector<int32_t>{1, 0});
}

TEST_CASE("idx: what is wrong") {
  const Folder folder;
  write(folder);
  const auto why = [&](const std::string& yaml, Split split = Split::train) {
    return data_error([&] { load("idx", yaml, split, folder.path()); });
  };
  CHECK(has(why("{images: i, labels: l, classes: 3}"), "is 3, which is not one of the 3 classes"));
  CHECK(has(why("{images: i, labels: tl}"), "must have the same count"));
  CHECK(has(why("{images: i, labels: i}"), "does not hold labels"));
  CHECK(has(why("{images: i, labels: l}", Split::test), "has no test split"));
  CHECK(has(why("{images: none, labels: l}"), "cannot be opened"));
  CHECK(has(complaint_of(dataset_type("idx"), "{images: i, labels: l, test_images: i}"),
            "must be given together"));
}

TEST_CASE("idx: images are not decompressed for labels that do not fit") {
  const Folder folder;
  const uint32_t samples = 40'000'000;
  folder.write("i.gz",
               gzip(idx_header(0x08, {samples, 4}) + std::string(4 * size_t{samples}, 'x'), 1));
  folder.write("l", idx_header(0x08, {3}) + std::string("\x00\x03\x01", 3));
  const size_t grown = peak_growth([&] {
    CHECK(has(
        data_error([&] { load("idx", "{images: i.gz, labels: l}", Split::train, folder.path()); }),
        "must have the same count"));
  });
  CHECK(grown < kHostileBytes);
}

TEST_CASE("idx: Python lines") {
  CHECK(torch_data_of("idx", "{images: /i, labels: /l}") ==
        "x = read_idx(\"/i\")\nx = x.unsqueeze(1) if x.dim() == 3 else x\ny = "
        "read_idx(\"/l\").long()\n");
}

}  // namespace
}  // namespace dpt
