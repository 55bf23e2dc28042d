#include "data/mnist_files.h"

namespace dpt::datasets {
namespace {

// Clanuwat et al. 2018: 60000 + 10000 cursive Japanese characters.
Dataset load(const std::any& settings, const LoadQuery& query) {
  return load_mnist_files("kmnist", std::any_cast<const MnistFiles&>(settings), query);
}

std::string torch(const std::any& settings, const LoadQuery& query) {
  return mnist_files_torch("kmnist", std::any_cast<const MnistFiles&>(settings), query);
}

}  // namespace

DatasetType kmnist() {
  DatasetType t{registry_entry<MnistFiles>(
      "kmnist",
      "KMNIST: 70000 cursive Japanese characters, 28 x 28, in ten classes "
      "(Clanuwat et al. 2018).",
      {"torchvision.datasets.KMNIST",
       "dataset: kmnist\n"
       "dataset: {kmnist: {path: ~/data/kmnist}}"})};
  t.load = load;
  t.torch = torch;
  t.stand_in = like_mnist;
  return t;
}

}  // namespace dpt::datasets
