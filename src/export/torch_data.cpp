// The data sets of an exported program.
#include <algorithm>
#include <filesystem>
#include <numeric>

#include <fmt/format.h>

#include "base/fail.h"
#include "base/units.h"
#include "data/dataset.h"
#include "data/write_npy.h"
#include "export/torch_parts.h"
#include "formats/python_call.h"

namespace dpt {
namespace {

namespace fs = std::filesystem;

bool mixes_samples(const Choice& transform) {
  return type_of<TransformType>(transform).mixing != nullptr;
}
// Whether it changes single samples at random.
bool is_random(const Choice& transform) {
  return type_of<TransformType>(transform).draws() && !mixes_samples(transform);
}

// fitted: as in TorchExport
LoadQuery query_of(const Spec& spec, Split split, const Dataset* fitted) {
  LoadQuery out{.split = split,
                .folder = fs::path(spec.path).parent_path().string(),
                .binary_labels = has_binary_labels(type_of<LossType>(spec.loss)),
                .training_set = fitted};
  if (spec.data.limit > 0)
    out.trained = [limit = spec.data.limit](int64_t samples) {
      std::vector<uint32_t> rows(static_cast<size_t>(std::min(samples, limit)));
      std::iota(rows.begin(), rows.end(), 0U);
      return rows;
    };
  return out;
}

// Whether samples are transformed one by one as they are read.
bool by_sample(const Spec& spec, Split split) {
  return type_of<DatasetType>(spec.data.dataset).torch_reads_samples ||
         (split == Split::train && std::ranges::any_of(spec.data.transforms, is_random));
}

// "vgg-train-x.npy", beside "vgg.py".
std::string array_name(const TorchExport& query, Split split, std::string_view which) {
  return fmt::format("{}-{}-{}.npy", fs::path(query.program).stem().string(),
                     split == Split::train ? "train" : "test", which);
}

std::string array_text(const TorchFacts& f, Split split) {
  if (f.query.program.empty())
    fail(Fault::spec,
         "PyTorch cannot make the data set '{}', so it is written as .npy files beside the "
         "program: name the program's file, as with --output {}.py",
         f.spec.data.dataset.what->name, f.spec.name);
  return filled("arrays", {{"x", python(array_name(f.query, split, "x"))},
                           {"y", python(array_name(f.query, split, "y"))},
                           {"tokens", f.query.tokens > 0},
                           {"classes", f.query.classes > 0}});
}

std::string dataset_text(const TorchFacts& f, Split split) {
  const Choice& dataset = f.spec.data.dataset;
  const auto& type = type_of<DatasetType>(dataset);
  const std::string text =
      type.torch ? type.torch(dataset.settings, query_of(f.spec, split, f.query.fitted)) : "";
  if (text.empty()) return array_text(f, split);
  return text.ends_with('\n') ? text : text + "\n";
}

// A random change of x, and the same of y if the targets are moved.
std::string random_text(const Choice& t, Split split, bool moves_targets) {
  const TransformType::Random& random = type_of<TransformType>(t).random;
  const std::string x = random.torch(t.settings, split);
  if (!moves_targets || random.torch_targets == nullptr || x.empty()) return x;
  const std::string y = random.torch_targets(t.settings, split);
  if (split == Split::test) return x + y;
  return fmt::format(
      "state = torch.get_rng_state()\n{}torch.set_rng_state(state)  # y is moved as x is\n{}", x,
      y);
}

std::string transforms_text(const TorchFacts& f, Split split) {
  const DataSpec& data = f.spec.data;
  const auto line = [](const std::string& text) {
    return text.empty() || text.ends_with('\n') ? text : text + "\n";
  };
  const auto fixed = std::ranges::find_if_not(data.transforms, is_random);
  std::string out;
  if (f.query.input.dtype == DType::f32 &&
      (fixed == data.transforms.end() || fixed->what->name != "to_tensor"))
    out += "x = x.float()\n";
  for (const Choice& t : data.transforms) {
    const auto& type = type_of<TransformType>(t);
    if (mixes_samples(t)) continue;
    const bool random = is_random(t);
    if (random ? type.random.torch == nullptr : type.torch == nullptr)
      fail(Fault::spec, "transform '{}' has no equivalent in a PyTorch program; export without it",
           type.name);
    out += line(random ? random_text(t, split, f.query.moves_targets) : type.torch(t.settings));
  }
  for (const Choice& t : data.target_transforms)
    out += line(type_of<TargetTransformType>(t).torch(t.settings, f.query.classes));
  if (f.mixes() && split == Split::train && data.target_transforms.empty())
    out += fmt::format("y = torch.nn.functional.one_hot(y, {}).float()\n", f.query.classes);
  return out;
}

// "(mixup, 0.2, 1.0), (cutmix, 1.0, 0.5)": how samples are mixed, with alpha and p; empty: they are
// not.
std::string mixings_text(const TorchFacts& f, Split split) {
  std::string out;
  if (split == Split::test) return out;
  for (const Choice& t : f.spec.data.transforms)
    if (mixes_samples(t)) {
      const Mixing m = type_of<TransformType>(t).mixing(t.settings);
      out += fmt::format("{}({}, {}, {})", out.empty() ? "" : ", ", t.what->name, python(m.alpha),
                         python(m.p));
    }
  return out;
}

}  // namespace

std::string torch_data(const TorchFacts& f, Split split) {
  const DataSpec& data = f.spec.data;
  const bool reads = type_of<DatasetType>(data.dataset).torch_reads_samples;
  const bool limited = data.limit > 0 && split == Split::train;
  const bool sampled = by_sample(f.spec, split);
  const std::string name = split == Split::train ? "train" : "test";
  std::string labels;
  if (f.weighted() && split == Split::train)
    labels = !reads    ? "y"
             : limited ? fmt::format("torch.tensor(data.dataset.targets[:{}])", f.query.samples)
                       : "torch.tensor(data.targets)";
  // Random transforms use a generator state of their own (class Transformed), so that the order of
  // samples stays dptrain's.
  return filled("data", {{"split", name},
                         {"by_sample", sampled},
                         {"data", sampled ? fmt::format("Transformed(data, {}_transform)", name)
                                          : "TensorDataset(x, y)"},
                         {"mixings", mixings_text(f, split)},
                         {"labels", labels},
                         {"transforms", transforms_text(f, split)},
                         {"dataset", dataset_text(f, split)},
                         {"subset", limited && reads ? std::to_string(f.query.samples) : ""},
                         {"first", limited && !reads ? std::to_string(data.limit) : ""},
                         {"tables", !reads}});
}

bool torch_transforms_samples(const TorchFacts& f) {
  return by_sample(f.spec, Split::train) || (f.spec.evaluate.on && by_sample(f.spec, Split::test));
}

bool torch_draws(const Spec& spec) { return std::ranges::any_of(spec.data.transforms, is_random); }

void write_torch_arrays(const Spec& spec, const TorchExport& query) {
  const Choice& dataset = spec.data.dataset;
  const auto& type = type_of<DatasetType>(dataset);
  if (type.torch &&
      !type.torch(dataset.settings, query_of(spec, Split::train, query.fitted)).empty())
    return;
  constexpr size_t kMostArrayBytes = kGiB;
  size_t bytes = 0;
  const auto each_split = [&](bool sizes_only, auto&& visit) {
    for (const Split split : {Split::train, Split::test}) {
      if (split == Split::test && !spec.evaluate.on) continue;
      LoadQuery load = query_of(spec, split, query.fitted);
      load.sizes_only = sizes_only;
      const Dataset d = type.load(dataset.settings, load);
      visit(split, d, split == Split::train ? std::min(query.samples, d.size()) : d.size());
    }
  };
  each_split(true, [&](Split, const Dataset& d, int64_t samples) {
    const auto of = [&](const Table& t) {
      return TensorDesc{t.desc.dtype, t.desc.shape.with(0, samples)}.bytes();
    };
    bytes += of(d.inputs) + of(d.targets);
  });
  if (bytes > kMostArrayBytes)
    fail(Fault::spec,
         "data set '{}': the program's data would take {} MiB of .npy files, and at most {} MiB "
         "are written; "
         "export with fewer samples, as with data.limit=1000",
         type.name, bytes / kMiB, kMostArrayBytes / kMiB);
  each_split(false, [&](Split split, const Dataset& d, int64_t samples) {
    const auto write = [&](std::string_view which, const Table& table, const SampleReader* reader) {
      const fs::path folder = fs::path(query.program).parent_path();
      write_npy((folder / array_name(query, split, which)).string(), table, reader, samples);
    };
    write("x", d.inputs, d.reader.get());
    write("y", d.targets, nullptr);
  });
}

}  // namespace dpt
