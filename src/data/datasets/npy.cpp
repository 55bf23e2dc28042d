#include "data/readers/npy.h"

#include <algorithm>

#include "base/fail.h"
#include "data/channel_scaling.h"
#include "data/tables.h"
#include "formats/python_call.h"

namespace dpt::datasets {
namespace {

// Two arrays as numpy.save writes them. Inputs of type u1 stay bytes, other integers are tokens,
// floats numbers. Integer targets [N, ...] are classes; unless `classes` is given, their number is
// that of the training targets. Targets of floats are values, where [N] means [N, 1].
struct Npy {
  static constexpr Usage kUsage{
      "",
      "dataset: {npy: {inputs: x.npy, targets: y.npy, test_inputs: test_x.npy,\n"
      "    test_targets: test_y.npy, classes: 10}}\n"
      "dataset: {npy: {inputs: tokens.npy, targets: y.npy, tokens: 5000}}\n"
      "dataset: {npy: {inputs: x.npy, targets: y.npy, standardize: true}}"};

  std::string inputs, targets, test_inputs, test_targets;
  int64_t classes = 0, tokens = 0;
  bool standardize = false;
  static KeyTable<Npy> keys() {
    return KeyTable<Npy>()
        .required_path("inputs", &Npy::inputs, "NPY file [N, ...]")
        .required_path("targets", &Npy::targets,
                       "NPY file of classes [N] (or [N, H, W], one per pixel) or values [N, ...]")
        .path("test_inputs", &Npy::test_inputs, "the same for the test set")
        .path("test_targets", &Npy::test_targets, "the same for the test set")
        .optional("classes", &Npy::classes, "number of classes; 0: the largest class + 1",
                  kNotNegative)
        .shared()
        .optional("tokens", &Npy::tokens,
                  "number of tokens, if inputs are integers; 0: the largest in `inputs` and "
                  "`test_inputs` + 1",
                  kNotNegative)
        .shared()
        .optional("standardize", &Npy::standardize,
                  "whether inputs of floats become (x - mean) / std, by the mean and standard "
                  "deviation of each column or channel (the first dimension of a sample) in the "
                  "training part")
        .shared();
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

Table targets_from(const std::string& path, int64_t& classes, const LoadQuery& query) {
  const Table read = read_npy(path);
  if (read.desc.dtype != DType::f32)
    return as_classes(read, classes, path, query.ignore_index, Shape::kMaxRank,
                      query.training_set ? ClassesKey::none : ClassesKey::number);
  if (classes > 0)
    fail(Fault::data, "{} holds {} f32 values, but classes are whole numbers; save integers", path,
         read.desc.shape.str());
  return read.desc.shape.rank() == 1 ? reshaped(read, {read.size(), 1}) : read;
}

// The largest token. Throws Error{data} if one is not among `tokens`; 0: only negative ones are
// not.
int64_t largest_token(const Table& inputs, int64_t tokens, const std::string& path) {
  int64_t largest = 0;
  const std::span<const int32_t> all = values_of<int32_t>(inputs);
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i] < 0 || (tokens > 0 && all[i] >= tokens))
      fail(Fault::data,
           "{}: sample {} (counted from 0) holds {}, but inputs of integers are tokens 0..{}; save "
           "numbers that are no tokens as float32",
           path, static_cast<int64_t>(i) / inputs.sample().elements(), all[i],
           tokens > 0 ? std::to_string(tokens - 1) : "");
    largest = std::max<int64_t>(largest, all[i]);
  }
  return largest;
}

// The number of tokens: given, or by the largest in both sets.
int64_t tokens_of(const Npy& c, const Table& inputs, Split split) {
  const int64_t largest = largest_token(inputs, c.tokens, paths_of(c, split).inputs);
  if (c.tokens > 0) return c.tokens;
  if (c.test_inputs.empty()) return largest + 1;
  const std::string& other = split == Split::train ? c.test_inputs : c.inputs;
  const Table rest = read_npy(other);
  return std::max(largest, rest.desc.dtype == DType::i32 ? largest_token(rest, 0, other) : 0) + 1;
}

// Sets the inputs, standardized as those of the training set.
void load_standardized(const std::any& settings, const LoadQuery& query, const std::string& path,
                       Dataset& d);

Dataset load(const std::any& settings, const LoadQuery& query) {
  auto c = std::any_cast<const Npy&>(settings);
  const Dataset* const training = query.training_set;
  if (training != nullptr) {
    if (c.classes == 0) c.classes = training->classes;
    if (c.tokens == 0) c.tokens = training->tokens;
  }
  const Paths paths = paths_of(c, query.split);
  Dataset d;
  d.classes = c.classes;
  if (d.classes == 0 && training == nullptr && query.split == Split::test)
    targets_from(paths_of(c, Split::train).targets, d.classes, query);
  if (c.standardize && training != nullptr && training->channels.empty())
    fail(Fault::data,
         "{} is to be standardized, but the training set is not; write `standardize: true` there, "
         "or leave it out here",
         paths.inputs);
  if (c.standardize || (training != nullptr && !training->channels.empty()))
    load_standardized(settings, query, paths.inputs, d);
  else
    d.inputs = read_npy(paths.inputs);
  if (d.inputs.desc.dtype == DType::i32) d.tokens = tokens_of(c, d.inputs, query.split);
  d.targets = targets_from(paths.targets, d.classes, query);
  check_counts(d.inputs, paths.inputs, d.targets, paths.targets);
  d.description = describe("npy", d, paths.inputs);
  return d;
}

void load_standardized(const std::any& settings, const LoadQuery& query, const std::string& path,
                       Dataset& d) {
  const NpyValues read = read_npy_values(path);
  if (read.values.empty())
    fail(Fault::data,
         "{} holds integers, which `standardize` does not take; save numbers as float32 or float64",
         path);
  if (query.training_set != nullptr) {
    d.channels = query.training_set->channels;
  } else if (query.split == Split::test) {
    d.channels =
        load(settings,
             {.folder = query.folder, .ignore_index = query.ignore_index, .trained = query.trained})
            .channels;
  } else {
    const std::vector<uint32_t> rows =
        query.trained ? query.trained(read.shape[0]) : std::vector<uint32_t>();
    d.channels = fit_channels(read.values, read.shape.tail(1), rows, path);
  }
  const Shape sample = read.shape.tail(1);
  if (d.channels.size() != scaled_channels(sample))
    fail(Fault::data, "{} has samples {}, but the training set has {} columns or channels", path,
         sample.str(), d.channels.size());
  d.inputs = scaled(read.values, read.shape, d.channels);
}

// Statistics are left to the arrays that the export then writes.
std::string torch(const std::any& settings, const LoadQuery& query) {
  const auto& c = std::any_cast<const Npy&>(settings);
  if (c.standardize) return "";
  const Paths paths = paths_of(c, query.split);
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
  t.has_test_set = [](const std::any& s) {
    return !std::any_cast<const Npy&>(s).test_inputs.empty();
  };
  t.torch = torch;
  return t;
}

}  // namespace dpt::datasets
