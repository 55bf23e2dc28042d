#include "data/cifar_files.h"

namespace dpt::datasets {
namespace {

// Krizhevsky 2009: 50000 + 10000 photographs, each with one of 100 fine and of 20 coarse labels.
struct Cifar100 {
  static constexpr Usage kUsage{"torchvision.datasets.CIFAR100",
                                "dataset: cifar100\n"
                                "dataset: {cifar100: {path: ~/data/cifar100, labels: coarse}}"};

  std::string path;
  std::string labels = "fine";
  static KeyTable<Cifar100> keys() {
    return KeyTable<Cifar100>()
        .path("path", &Cifar100::path,
              "folder of the files or of their archive; none: searched in $DPTRAIN_DATA, "
              "datasets/, ../shared/datasets and the user's cache")
        .choice("labels", &Cifar100::labels, {"fine", "coarse"},
                "the 100 fine classes or the 20 coarse ones");
  }
};

CifarFormat format(const Cifar100& settings) {
  const bool fine = settings.labels == "fine";
  return {.name = "cifar100",
          .archive = "cifar-100-binary.tar",
          .folder = "cifar-100-binary",
          .train = {"train.bin"},
          .test = {"test.bin"},
          .labels = 2,
          .label = fine ? size_t{1} : size_t{0},
          .classes = fine ? 100 : 20};
}

Dataset load(const std::any& settings, const LoadQuery& query) {
  const auto& c = std::any_cast<const Cifar100&>(settings);
  return load_cifar(format(c), c.path, query);
}

std::string torch(const std::any& settings, const LoadQuery& query) {
  const auto& c = std::any_cast<const Cifar100&>(settings);
  return cifar_torch(format(c), c.path, query);
}

// 20 classes suit models for either kind of labels.
std::string stand_in(const std::any&) {
  return "{synthetic_images: {samples: 50000, shape: [3, 32, 32], classes: 20}}";
}

}  // namespace

DatasetType cifar100() {
  DatasetType t{registry_entry<Cifar100>(
      "cifar100",
      "CIFAR-100, binary version: 60000 color photographs, 32 x 32, in 100 classes "
      "(Krizhevsky 2009).")};
  t.load = load;
  t.torch = torch;
  t.stand_in = stand_in;
  return t;
}

}  // namespace dpt::datasets
