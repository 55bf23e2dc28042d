#include "../archive.h"
#include "loading.h"

namespace dpt {
namespace {

std::string record(int coarse, int fine) {
  std::string out(3074, 'p');
  out[0] = static_cast<char>(coarse);
  out[1] = static_cast<char>(fine);
  return out;
}

TEST_CASE("cifar100: fine labels or coarse ones, from files or the archive") {
  const Folder folder, archive;
  const std::string train = record(3, 99) + record(19, 0);
  folder.write("train.bin", train);
  archive.write("cifar-100-binary.tar.gz", gzip(tar({{"cifar-100-binary/train.bin", train}})));
  for (const Folder* f : {&folder, &archive}) {
    const Dataset fine = load("cifar100", f->path());
    CHECK(fine.inputs.desc == TensorDesc{DType::u8, {2, 3, 32, 32}});
    CHECK(fine.classes == 100);
    CHECK(all_of<int32_t>(fine.targets) == std::vector<int32_t>{99, 0});
    const Dataset coarse = load("cifar100", "{path: " + f->path() + ", labels: coarse}");
    CHECK(coarse.classes == 20);
    CHECK(all_of<int32_t>(coarse.targets) == std::vector<int32_t>{3, 19});
  }
  CHECK(has(torch_data_of("cifar100", archive.path()), "tarfile.open(\"" + archive.path()));
  CHECK(has(torch_data_of("cifar100", archive.path()), "y = records[:, 1].long()"));
}

TEST_CASE("cifar100: what is wrong") {
  const Folder folder;
  folder.write("train.bin", record(20, 3));
  CHECK(load("cifar100", folder.path()).size() == 1);  // nobody asked for the coarse label
  CHECK(has(data_error([&] { load("cifar100", "{path: " + folder.path() + ", labels: coarse}"); }),
            "is 20, which is not one of the 20 classes 0..19"));
  CHECK(has(complaint_of(dataset_type("cifar100"), "{labels: both}"), "fine"));
}

}  // namespace
}  // namespace dpt
