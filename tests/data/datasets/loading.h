// Finds a data set by its name and loads it with settings as a spec gives them.
#pragma once

#include "../folder.h"
#include "data/dataset.h"
#include "data/tables.h"

namespace dpt {

inline const DatasetType& dataset_type(const std::string& name) {
  for (const DatasetType& t : dataset_table())
    if (t.name == name) return t;
  FAIL("no such data set");
  return dataset_table()[0];
}

inline Dataset load(const std::string& name, const std::string& yaml, Split split = Split::train,
                    const std::string& folder = "") {
  const DatasetType& type = dataset_type(name);
  return type.load(settings_of(type, yaml, folder), {.split = split, .folder = folder});
}

// A separate validation set of a run with this training set.
inline Dataset load_validation(const std::string& name, const std::string& yaml,
                               const Dataset& training, const std::string& folder) {
  const DatasetType& type = dataset_type(name);
  return type.load(settings_of(type, yaml, folder), {.folder = folder, .training_set = &training});
}

inline std::string torch_data_of(const std::string& name, const std::string& yaml,
                                 Split split = Split::train, const std::string& folder = "") {
  const DatasetType& type = dataset_type(name);
  return type.torch(settings_of(type, yaml, folder), {.split = split, .folder = folder});
}

template <class T>
std::vector<T> all_of(const Table& t) {
  return {values_of<T>(t).begin(), values_of<T>(t).end()};
}

inline bool same(const Table& a, const Table& b) {
  return a.desc == b.desc && std::equal(a.data.get(), a.data.get() + a.desc.bytes(), b.data.get());
}

// A small set in MNIST's four files.
inline void write_mnist(const Folder& folder) {
  folder.write("train-images-idx3-ubyte.gz", gzip(idx_bytes({3, 28, 28})));
  folder.write("train-labels-idx1-ubyte.gz",
               gzip(idx_header(0x08, {3}) + std::string("\x05\x00\x09", 3)));
  folder.write("t10k-images-idx3-ubyte", idx_bytes({2, 28, 28}));
  folder.write("t10k-labels-idx1-ubyte", idx_header(0x08, {2}) + std::string("\x01\x02", 2));
}

}  // namespace dpt
