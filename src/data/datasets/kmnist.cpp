#include "data/mnist_files.h"

namespace dpt::datasets {
namespace {

// Clanuwat et al. 2018: 60000 + 10000 cursive Japanese characters.
Dataset load(const std::any& settings, Split split, const std::string& folder) {
  return load_mnist_files("kmnist", std::any_cast<const MnistFiles&>(settings), split, folder);
}

std::string torch(const std::any& settings, Split split, const std::string& folder) {
  return mnist_files_torch("kmnist", std::any_cast<const MnistFiles&>(settings), split, folder);
}

}  // namespace

DatasetType kmnist() {
  return {nameable<MnistFiles>("kmnist",
                               "KMNIST: 70000 cursive Japanese characters, 28 x 28, in ten classes "
                               "(Clanuwat et al. 2018)."),
          load, true, torch};
}

}  // namespace dpt::datasets
