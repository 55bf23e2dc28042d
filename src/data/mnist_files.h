// The four IDX files in which MNIST and the sets made after it come.
#pragma once

#include "data/dataset.h"

namespace dpt {

struct MnistFiles {
  std::string path;  // of the folder; empty: where find_files looks
  static KeyTable<MnistFiles> keys() {
    return KeyTable<MnistFiles>().path(
        "path", &MnistFiles::path,
        "folder of the four files; none: searched in $DPTRAIN_DATA, datasets/, "
        "../shared/datasets and the user's cache");
  }
};

// DatasetType::stand_in
inline std::string like_mnist(const std::any&) {
  return "{synthetic_images: {shape: [1, 28, 28]}}";
}

// Images u8 [N, 1, 28, 28], ten classes. `name` is the set's.
Dataset load_mnist_files(const std::string& name, const MnistFiles& settings,
                         const LoadQuery& query);
std::string mnist_files_torch(const std::string& name, const MnistFiles& settings,
                              const LoadQuery& query);

}  // namespace dpt
