#include "loading.h"

namespace dpt {
namespace {

TEST_CASE("fashion_mnist: both splits of the four files, plain or .gz") {
  const Folder folder;
  write_mnist(folder);
  const Dataset train = load("fashion_mnist", folder.path());
  CHECK(train.inputs.desc == TensorDesc{DType::u8, {3, 1, 28, 28}});
  CHECK(all_of<int32_t>(train.targets) == std::vector<int32_t>{5, 0, 9});
  CHECK(train.classes == 10);
  CHECK(train.description ==
        "fashion_mnist: 3 x [1, 28, 28] u8, 10 classes, from " + folder.path());
  CHECK(load("fashion_mnist", folder.path(), Split::test).size() == 2);
}

TEST_CASE("fashion_mnist: files that do not fit are refused") {
  const auto why = [](const Folder& folder) {
    return data_error([&] { load("fashion_mnist", folder.path(), Split::test); });
  };
  const Folder folder;
  write_mnist(folder);
  folder.write("t10k-labels-idx1-ubyte", idx_header(0x08, {2}) + "\x01\x0a");
  CHECK(has(why(folder), "t10k-labels-idx1-ubyte: the label of sample 1 (counted from 0) is 10"));
  folder.write("t10k-labels-idx1-ubyte", idx_header(0x08, {1}) + "\x01");
  CHECK(has(why(folder), "holds 2 samples, but"));
  folder.write("t10k-images-idx3-ubyte", idx_bytes({2, 32, 32}));
  CHECK(has(why(folder), "is not a file of fashion_mnist: it holds [2, 32, 32] u8"));
}

TEST_CASE("fashion_mnist: not there") {
  const Folder folder;
  const std::string why = data_error([&] { load("fashion_mnist", folder.path()); });
  CHECK(has(why, folder.path()));
  CHECK(has(why, "tools/fetch_data.sh fashion_mnist"));
}

TEST_CASE("fashion_mnist: Python lines") {
  const Folder folder;
  write_mnist(folder);
  CHECK(torch_data_of("fashion_mnist", folder.path(), Split::test) ==
        "x = read_idx(\"" + folder.file("t10k-images-idx3-ubyte") +
            "\").unsqueeze(1)\ny = read_idx(\"" + folder.file("t10k-labels-idx1-ubyte") +
            "\").long()\n");
}

}  // namespace
}  // namespace dpt
