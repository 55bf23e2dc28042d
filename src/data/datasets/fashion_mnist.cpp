#include "data/mnist_files.h"

namespace dpt::datasets {
namespace {

// Xiao, Rasul and Vollgraf 2017: 60000 + 10000 photographs of clothes.
Dataset load(const std::any& settings, const LoadQuery& query) {
  Dataset d = load_mnist_files("fashion_mnist", std::any_cast<const MnistFiles&>(settings), query);
  d.class_names = {"T-shirt/top", "Trouser", "Pullover", "Dress", "Coat",
                   "Sandal",      "Shirt",   "Sneaker",  "Bag",   "Ankle boot"};
  return d;
}

std::string torch(const std::any& settings, const LoadQuery& query) {
  return mnist_files_torch("fashion_mnist", std::any_cast<const MnistFiles&>(settings), query);
}

}  // namespace

DatasetType fashion_mnist() {
  DatasetType t{
      registry_entry<MnistFiles>("fashion_mnist",
                                 "Fashion-MNIST: 70000 photographs of clothes, 28 x 28, in ten "
                                 "classes (Xiao et al. 2017).",
                                 {"torchvision.datasets.FashionMNIST",
                                  "dataset: fashion_mnist\n"
                                  "dataset: {fashion_mnist: {path: ~/data/fashion-mnist}}"})};
  t.load = load;
  t.torch = torch;
  t.stand_in = like_mnist;
  return t;
}

}  // namespace dpt::datasets
