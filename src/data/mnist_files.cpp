#include "data/mnist_files.h"

#include <filesystem>

#include "base/fail.h"
#include "data/readers/idx.h"
#include "data/tables.h"
#include "formats/python_call.h"

namespace dpt {
namespace {

std::vector<std::string> names_of(Split split) {
  if (split == Split::train) return {"train-images-idx3-ubyte", "train-labels-idx1-ubyte"};
  return {"t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"};
}

}  // namespace

Dataset load_mnist_files(const std::string& name, const MnistFiles& settings,
                         const LoadQuery& query) {
  const std::vector<std::string> files =
      find_files(name, settings.path, query.folder, names_of(query.split));
  Dataset d;
  d.classes = 10;
  const TensorDesc images = read_idx_header(files[0]);
  if (images.dtype != DType::u8 || images.shape != Shape{images.shape[0], 28, 28})
    fail(Fault::data, "{} is not a file of {}: it holds {} {}, where [N, 28, 28] u8 was expected",
         files[0], name, images.shape.str(), name_of(images.dtype));
  check_counts({.desc = images}, files[0], {.desc = read_idx_header(files[1])}, files[1]);
  d.targets = as_classes(read_idx(files[1]), d.classes, files[1], query.ignore_index);
  d.inputs = with_channel(read_idx(files[0]));
  const std::string folder_path = std::filesystem::path(files[0]).parent_path().string();
  if (settings.path.empty()) d.found_in = std::filesystem::absolute(folder_path).lexically_normal();
  d.description = describe(name, d, folder_path);
  return d;
}

std::string mnist_files_torch(const std::string& name, const MnistFiles& settings,
                              const LoadQuery& query) {
  const std::vector<std::string> files =
      find_files(name, settings.path, query.folder, names_of(query.split));
  return fmt::format("x = read_idx({}).unsqueeze(1)\ny = read_idx({}).long()\n", python(files[0]),
                     python(files[1]));
}

}  // namespace dpt
