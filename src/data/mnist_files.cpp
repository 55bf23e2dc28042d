#include "data/mnist_files.h"

#include <filesystem>

#include "base/fail.h"
#include "data/readers/idx.h"
#include "data/tables.h"

namespace dpt {
namespace {

std::vector<std::string> names_of(Split split) {
  if (split == Split::train) return {"train-images-idx3-ubyte", "train-labels-idx1-ubyte"};
  return {"t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"};
}

}  // namespace

Dataset load_mnist_files(const std::string& name, const MnistFiles& settings, Split split,
                         const std::string& folder) {
  const std::vector<std::string> files = find_files(name, settings.path, folder, names_of(split));
  Dataset d;
  d.classes = 10;
  d.inputs = with_channel(read_idx(files[0]));
  if (d.inputs.desc.dtype != DType::u8 || d.inputs.sample() != Shape{1, 28, 28})
    fail(Fault::data, "{} is not a file of {}: it holds {} {}, where [N, 28, 28] u8 was expected",
         files[0], name, d.inputs.desc.shape.str(), name_of(d.inputs.desc.dtype));
  d.targets = as_classes(read_idx(files[1]), d.classes, files[1]);
  check_counts(d.inputs, files[0], d.targets, files[1]);
  d.description = describe(name, d, std::filesystem::path(files[0]).parent_path().string());
  return d;
}

std::string mnist_files_torch(const std::string& name, const MnistFiles& settings, Split split,
                              const std::string& folder) {
  const std::vector<std::string> files = find_files(name, settings.path, folder, names_of(split));
  return fmt::format("x = read_idx({}).unsqueeze(1)\ny = read_idx({}).long()\n",
                     python_text(files[0]), python_text(files[1]));
}

}  // namespace dpt
