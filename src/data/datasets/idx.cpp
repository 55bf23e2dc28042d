#include "data/readers/idx.h"

#include "base/fail.h"
#include "data/tables.h"
#include "formats/python_call.h"

namespace dpt::datasets {
namespace {

// Any pair of IDX files. Inputs [N, H, W] become images [N, 1, H, W]; labels are u8 or integers
// [N]. Unless given, the number of classes is that of the training labels.
struct Idx {
  static constexpr Usage kUsage{"",
                                "dataset: {idx: {images: x.gz, labels: y.gz, test_images: "
                                "test_x.gz, test_labels: test_y.gz,\n"
                                "    classes: 10}}"};

  std::string images, labels, test_images, test_labels;
  int64_t classes = 0;
  static KeyTable<Idx> keys() {
    return KeyTable<Idx>()
        .required_path("images", &Idx::images, "IDX file of the inputs, plain or .gz")
        .required_path("labels", &Idx::labels, "IDX file of the classes")
        .path("test_images", &Idx::test_images, "the same for the test set")
        .path("test_labels", &Idx::test_labels, "the same for the test set")
        .optional("classes", &Idx::classes, "number of classes; 0: the largest label + 1",
                  kNotNegative)
        .shared();
  }
  static void check(const Idx& c, const Owner& owner, Diagnostics& d) {
    if (c.test_images.empty() != c.test_labels.empty())
      d.error(owner.where, "'test_images' and 'test_labels' must be given together");
  }
};

struct Paths {
  std::string images, labels;
};
Paths paths_of(const Idx& c, Split split) {
  const bool train = split == Split::train;
  if (!train && c.test_images.empty()) throw NoTestSplit("idx", "test_images and test_labels");
  return {train ? c.images : c.test_images, train ? c.labels : c.test_labels};
}

Dataset load(const std::any& settings, const LoadQuery& query) {
  const auto& c = std::any_cast<const Idx&>(settings);
  const Paths paths = paths_of(c, query.split);
  Dataset d;
  d.classes = c.classes == 0 && query.training_set ? query.training_set->classes : c.classes;
  if (d.classes == 0 && query.split == Split::test) {  // both splits must have the same classes
    const std::string train = paths_of(c, Split::train).labels;
    as_classes(read_idx(train), d.classes, train, query.ignore_index);
  }
  check_counts({.desc = read_idx_header(paths.images)}, paths.images,
               {.desc = read_idx_header(paths.labels)}, paths.labels);
  d.targets = as_classes(read_idx(paths.labels), d.classes, paths.labels, query.ignore_index, 1,
                         query.training_set ? ClassesKey::none : ClassesKey::number);
  d.inputs = with_channel(read_idx(paths.images));
  d.description = describe("idx", d, paths.images);
  return d;
}

std::string torch(const std::any& settings, const LoadQuery& query) {
  const Paths paths = paths_of(std::any_cast<const Idx&>(settings), query.split);
  return fmt::format(
      "x = read_idx({})\nx = x.unsqueeze(1) if x.dim() == 3 else x\ny = read_idx({}).long()\n",
      python(paths.images), python(paths.labels));
}

}  // namespace

DatasetType idx() {
  DatasetType t{
      registry_entry<Idx>("idx", "Two IDX files, the format of MNIST: inputs and classes.")};
  t.load = load;
  t.has_test_set = [](const std::any& s) {
    return !std::any_cast<const Idx&>(s).test_images.empty();
  };
  t.torch = torch;
  return t;
}

}  // namespace dpt::datasets
