#include "loading.h"

namespace dpt {
namespace {

TEST_CASE("kmnist is found under its own name") {
  const Folder folder;
  write_mnist(folder);
  std::filesystem::create_directories(folder.file("datasets/kmnist"));
  for (const char* name : {"t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"})
    std::filesystem::rename(folder.file(name), folder.file("datasets/kmnist/" + std::string(name)));
  const Dataset d = load("kmnist", "path: datasets", Split::test, folder.path());
  CHECK(d.description ==
        "kmnist: 2 x [1, 28, 28] u8, 10 classes, from " + folder.file("datasets/kmnist"));
  CHECK(has(data_error([&] { load("kmnist", "path: datasets", Split::train, folder.path()); }),
            "tools/fetch_data.sh kmnist"));
}

}  // namespace
}  // namespace dpt
