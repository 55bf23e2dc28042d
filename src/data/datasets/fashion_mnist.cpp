#include "data/mnist_files.h"

namespace dpt::datasets {
namespace {

// Xiao, Rasul and Vollgraf 2017: 60000 + 10000 photographs of clothes.
Dataset load(const std::any& settings, Split split, const std::string& folder) {
  return load_mnist_files("fashion_mnist", std::any_cast<const MnistFiles&>(settings), split,
                          folder);
}

std::string torch(const std::any& settings, Split split, const std::string& folder) {
  return mnist_files_torch("fashion_mnist", std::any_cast<const MnistFiles&>(settings), split,
                           folder);
}

}  // namespace

DatasetType fashion_mnist() {
  return {nameable<MnistFiles>("fashion_mnist",
                               "Fashion-MNIST: 70000 photographs of clothes, 28 x 28, in ten "
                               "classes (Xiao et al. 2017)."),
          load, true, torch};
}

}  // namespace dpt::datasets
