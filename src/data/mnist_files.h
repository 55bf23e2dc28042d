// Reads the four IDX files of MNIST and of data sets in its format.
#pragma once

#include "data/dataset.h"

namespace dpt {

struct MnistFiles {
  std::string path;  // the folder; empty: find_files() searches
  static KeyTable<MnistFiles> keys() {
    return KeyTable<MnistFiles>().path(
        "path", &MnistFiles::path,
        "folder of the four files; none: searched in $DPTRAIN_DATA, datasets/ "
        "and the user's cache");
  }
};

// A DatasetType::stand_in.
inline std::string like_mnist(const std::any&) {
  return "{synthetic_images: {shape: [1, 28, 28]}}";
}

// Loads images u8 [N, 1, 28, 28] of ten classes. `name` is the data set's name.
Dataset load_mnist_files(const std::string& name, const MnistFiles& settings,
                         const LoadQuery& query);
std::string mnist_files_torch(const std::string& name, const MnistFiles& settings,
                              const LoadQuery& query);

}  // namespace dpt
