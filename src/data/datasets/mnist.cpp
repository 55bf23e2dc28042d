#include "data/mnist_files.h"

namespace dpt::datasets {
namespace {

// LeCun, Cortes and Burges 1998: 60000 + 10000 handwritten digits.
Dataset load(const std::any& settings, const LoadQuery& query) {
  return load_mnist_files("mnist", std::any_cast<const MnistFiles&>(settings), query);
}

std::string torch(const std::any& settings, const LoadQuery& query) {
  return mnist_files_torch("mnist", std::any_cast<const MnistFiles&>(settings), query);
}

}  // namespace

DatasetType mnist() {
  DatasetType t{registry_entry<MnistFiles>(
      "mnist", "MNIST: 70000 handwritten digits, 28 x 28 (LeCun et al. 1998).",
      {"torchvision.datasets.MNIST",
       "dataset: mnist\n"
       "dataset: {mnist: {path: ~/data/mnist}}"})};
  t.load = load;
  t.torch = torch;
  t.stand_in = like_mnist;
  return t;
}

}  // namespace dpt::datasets
