#include "data/cifar_files.h"

namespace dpt::datasets {
namespace {

// Krizhevsky 2009: 50000 + 10000 photographs of ten classes of animals and vehicles.
struct Cifar10 {
  static constexpr Usage kUsage{"torchvision.datasets.CIFAR10",
                                "dataset: cifar10\n"
                                "dataset: {cifar10: {path: ~/data/cifar10}}"};

  std::string path;
  static KeyTable<Cifar10> keys() {
    return KeyTable<Cifar10>().path(
        "path", &Cifar10::path,
        "folder of the files or of their archive; none: searched in $DPTRAIN_DATA, datasets/ "
        "and the user's cache");
  }
};

CifarFormat format() {
  return {.name = "cifar10",
          .archive = "cifar-10-binary.tar",
          .folder = "cifar-10-batches-bin",
          .train = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin",
                    "data_batch_5.bin"},
          .test = {"test_batch.bin"}};
}

Dataset load(const std::any& settings, const LoadQuery& query) {
  Dataset d = load_cifar(format(), std::any_cast<const Cifar10&>(settings).path, query);
  d.class_names = {"airplane", "automobile", "bird",  "cat",  "deer",
                   "dog",      "frog",       "horse", "ship", "truck"};
  return d;
}

std::string torch(const std::any& settings, const LoadQuery& query) {
  return cifar_torch(format(), std::any_cast<const Cifar10&>(settings).path, query);
}

std::string stand_in(const std::any&) {
  return "{synthetic_images: {samples: 50000, shape: [3, 32, 32]}}";
}

}  // namespace

DatasetType cifar10() {
  DatasetType t{registry_entry<Cifar10>(
      "cifar10",
      "CIFAR-10, binary version: 60000 color photographs, 32 x 32, in ten classes "
      "(Krizhevsky 2009).")};
  t.load = load;
  t.torch = torch;
  t.stand_in = stand_in;
  return t;
}

}  // namespace dpt::datasets
