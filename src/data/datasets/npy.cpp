#include "data/readers/npy.h"

#include "base/fail.h"
#include "data/tables.h"
#include "formats/python_call.h"

namespace dpt::datasets {
namespace {

// Two arrays as numpy.save writes them. Inputs of type u1 stay bytes, i4 and i8 are tokens, f4 and
// f8 numbers. Integer targets [N] are classes; unless `classes` is given, their number is that of
// the training targets. Targets of type f4 and f8 are values, where [N] means [N, 1].
struct Npy {
  static constexpr Usage kUsage{
      "",
      "dataset: {npy: {inputs: x.npy, targets: y.npy, test_inputs: test_x.npy,\n"
      "    test_targets: test_y.npy, classes: 10}}"};

  std::string inputs, targets, test_inputs, test_targets;
  int64_t classes = 0;
  static KeyTable<Npy> keys() {
    return KeyTable<Npy>()
        .required_path("inputs", &Npy::inputs, "NPY file [N, ...]")
        .required_path("targets", &Npy::targets, "NPY file of classes [N] or values [N, ...]")
        .path("test_inputs", &Npy::test_inputs, "the same for the test set")
        .path("test_targets", &Npy::test_targets, "the same for the test set")
        .optional("classes", &Npy::classes, "number of classes; 0: the largest class + 1",
                  kNotNegative);
  }
  static void check(const Npy& c, const Owner& owner, Diagnostics& d) {
    if (c.test_inputs.empty() != c.test_targets.empty())
      d.error(owner.where, "'test_inputs' and 'test_targets' must be given together");
  }
};

struct Paths {
  std::string inputs, targets;
};
Paths paths_of(const Npy& c, Split split) {
  const bool train = split == Split::train;
  if (!train && c.test_inputs.empty()) throw NoTestSplit("npy", "test_inputs and test_targets");
  return {train ? c.inputs : c.test_inputs, train ? c.targets : c.test_targets};
}

Table targets_from(const std::string& path, int64_t& classes, std::optional<int64_t> ignore) {
  const Table read = read_npy(path);
  if (read.desc.dtype != DType::f32) return as_classes(read, classes, path, ignore);
  if (classes > 0)
    fail(Fault::data, "{} holds {} f32 values, but 'classes' was given; write whole numbers", path,
         read.desc.shape.str());
  return read.desc.shape.rank() == 1 ? reshaped(read, {read.size(), 1}) : read;
}

Dataset load(const std::any& settings, const LoadQuery& query) {
  const auto& c = std::any_cast<const Npy&>(settings);
  const Paths paths = paths_of(c, query.split);
  Dataset d;
  d.classes = c.classes;
  if (d.classes == 0 && query.split == Split::test)  // both splits must have the same classes
    targets_from(paths_of(c, Split::train).targets, d.classes, query.ignore_index);
  d.inputs = read_npy(paths.inputs);
  d.targets = targets_from(paths.targets, d.classes, query.ignore_index);
  check_counts(d.inputs, paths.inputs, d.targets, paths.targets);
  d.description = describe("npy", d, paths.inputs);
  return d;
}

std::string torch(const std::any& settings, const LoadQuery& query) {
  const Paths paths = paths_of(std::any_cast<const Npy&>(settings), query.split);
  return fmt::format(
      "x = torch.from_numpy(np.load({}))\n"
      "x = x.float() if x.is_floating_point() else x\n"
      "y = torch.from_numpy(np.load({}))\n"
      "y = y.float().reshape(len(y), *(y.shape[1:] or [1])) if y.is_floating_point() else "
      "y.long()\n",
      python(paths.inputs), python(paths.targets));
}

}  // namespace

DatasetType npy() {
  DatasetType t{
      registry_entry<Npy>("npy", "Two arrays written by numpy.save: inputs and targets.")};
  t.load = load;
  t.torch = torch;
  return t;
}

}  // namespace dpt::datasets
