#include "loading.h"

namespace dpt {
namespace {

TEST_CASE("mnist is found under its own name") {
  const Folder folder;
  write_mnist(folder);
  std::filesystem::create_directories(folder.file("datasets/mnist"));
  for (const char* name : {"t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"})
    std::filesystem::rename(folder.file(name), folder.file("datasets/mnist/" + std::string(name)));
  const Dataset d = load("mnist", "path: datasets", Split::test, folder.path());
  CHECK(d.description ==
        "mnist: 2 x [1, 28, 28] u8, 10 classes, from " + folder.file("datasets/mnist"));
  CHECK(has(data_error([&] { load("mnist", "path: datasets", Split::train, folder.path()); }),
            "tools/fetch_data.sh mnist"));
}

}  // namespace
}  // namespace dpt
