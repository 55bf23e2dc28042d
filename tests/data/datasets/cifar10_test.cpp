#include "../archive.h"
#include "loading.h"

namespace dpt {
namespace {

// Records whose pixels are all `label * 10`, but the first, which is 200.
std::string records(const std::vector<int>& labels) {
  std::string out;
  for (const int l : labels) {
    std::string pixels(3072, static_cast<char>(l * 10));
    pixels[0] = static_cast<char>(200);
    out += static_cast<char>(l) + pixels;
  }
  return out;
}

const std::vector<std::string> kTrain = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                                         "data_batch_4.bin", "data_batch_5.bin"};

// Batch i has the labels i and 9.
void write_files(const Folder& folder, const std::string& into) {
  for (int i = 0; i < 5; ++i) folder.write(into + kTrain[static_cast<size_t>(i)], records({i, 9}));
  folder.write(into + "test_batch.bin", records({7}));
}

TEST_CASE("cifar10: the five files in their order, the test file, or the archive as it comes") {
  const Folder files, nested, archive;
  write_files(files, "");
  write_files(nested, "cifar-10-batches-bin/");
  std::vector<std::pair<std::string, std::string>> members = {
      {"cifar-10-batches-bin/test_batch.bin", records({7})}};
  for (int i = 4; i >= 0; --i)  // in any order
    members.emplace_back("cifar-10-batches-bin/" + kTrain[static_cast<size_t>(i)], records({i, 9}));
  archive.write("cifar-10-binary.tar.gz", gzip(tar(members)));
  for (const Folder* folder : {&files, &nested, &archive}) {
    const Dataset train = load("cifar10", folder->path());
    CHECK(train.inputs.desc == TensorDesc{DType::u8, {10, 3, 32, 32}});
    CHECK(all_of<int32_t>(train.targets) == std::vector<int32_t>{0, 9, 1, 9, 2, 9, 3, 9, 4, 9});
    CHECK(train.classes == 10);
    const std::vector<uint8_t> pixels = all_of<uint8_t>(train.inputs);
    CHECK(pixels[0] == 200);
    CHECK(pixels[3072 * 4 + 1] == 20);
    CHECK(pixels[3072 * 10 - 1] == 90);
    const Dataset test = load("cifar10", folder->path(), Split::test);
    CHECK(all_of<int32_t>(test.targets) == std::vector<int32_t>{7});
  }
}

TEST_CASE("cifar10: what is wrong") {
  const Folder folder;
  const auto why = [&] { return data_error([&] { load("cifar10", folder.path(), Split::test); }); };
  CHECK(has(why(), "the files of cifar10 were not found: test_batch.bin; or "));
  CHECK(has(why(), "cifar-10-binary.tar, each plain or .gz"));
  CHECK(has(why(), "tools/fetch_data.sh cifar10"));
  folder.write("test_batch.bin", records({1, 10}));
  CHECK(has(why(), "test_batch.bin: the label of sample 1 (counted from 0) is 10"));
  folder.write("test_batch.bin", records({1}) + "x");
  CHECK(has(why(), "its 3074 bytes are not whole records of 3073 (1 of labels, 3072 of pixels)"));
  folder.write("test_batch.bin", "");
  CHECK(has(why(), "its 0 bytes are not whole records"));
  const Folder other;
  other.write("cifar-10-binary.tar", tar({{"cifar-10-batches-bin/readme.html", "x"}}));
  CHECK(has(data_error([&] { load("cifar10", other.path()); }),
            "does not hold cifar-10-batches-bin/data_batch_1.bin"));
}

TEST_CASE("cifar10: Python lines") {
  const Folder folder;
  write_files(folder, "");
  CHECK(torch_data_of("cifar10", folder.path(), Split::test) ==
        "records = [Path(path).read_bytes() for path in [\"" + folder.file("test_batch.bin") +
            "\"]]\n"
            "records = torch.frombuffer(bytearray(b\"\".join(records)), "
            "dtype=torch.uint8).view(-1, 3073)\n"
            "x = records[:, 1:].reshape(-1, 3, 32, 32)\ny = records[:, 0].long()\n");
}

}  // namespace
}  // namespace dpt
