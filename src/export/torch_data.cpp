// The data sets of an exported program.
#include <algorithm>
#include <filesystem>

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

// Random transforms use a generator state of their own, so that the order of samples stays
// dptrain's.
constexpr const char* kTransformed = R"py(class Transformed(torch.utils.data.Dataset):
    """Samples of `data`, transformed each time they are read, with random numbers of their own."""

    def __init__(self, data, transform):
        self.data = data
        self.transform = transform
        self.state = torch.Generator().manual_seed(SEED).get_state()

    def __len__(self):
        return len(self.data)

    def __getitem__(self, index):
        x, y = self.data[index]
        with torch.random.fork_rng(devices=[]):
            torch.set_rng_state(self.state)
            x, y = self.transform(x.unsqueeze(0), torch.as_tensor(y).unsqueeze(0))
            self.state = torch.get_rng_state()
        return x.squeeze(0), y.squeeze(0)
)py";

bool is_random(const Choice& transform) {
  return type_of<TransformType>(transform).random.change != nullptr;
}

LoadQuery query_of(const Spec& spec, Split split) {
  return {.split = split, .folder = fs::path(spec.path).parent_path().string()};
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
  const auto line = [&](std::string_view which, bool whole_numbers) {
    return fmt::format("{} = torch.from_numpy(np.load(Path(__file__).parent / {})){}\n", which,
                       python(array_name(f.query, split, which)), whole_numbers ? ".long()" : "");
  };
  return line("x", f.query.tokens > 0) + line("y", f.query.classes > 0);
}

std::string dataset_text(const TorchFacts& f, Split split) {
  const Choice& dataset = f.spec.data.dataset;
  const auto& type = type_of<DatasetType>(dataset);
  if (!type.torch) return array_text(f, split);
  const std::string text = type.torch(dataset.settings, query_of(f.spec, split));
  return text.ends_with('\n') ? text : text + "\n";
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
    const bool random = is_random(t);
    if (random ? type.random.torch == nullptr : type.torch == nullptr)
      fail(Fault::spec, "transform '{}' has no equivalent in a PyTorch program; export without it",
           type.name);
    out += line(random ? type.random.torch(t.settings, split) : type.torch(t.settings));
  }
  for (const Choice& t : data.target_transforms)
    out += line(type_of<TargetTransformType>(t).torch(t.settings, f.query.classes));
  return out;
}

}  // namespace

std::string torch_data(const TorchFacts& f, Split split) {
  const DataSpec& data = f.spec.data;
  const std::string name = split == Split::train ? "train" : "test";
  const bool reads = type_of<DatasetType>(data.dataset).torch_reads_samples;
  std::string out, body = dataset_text(f, split);
  if (data.limit > 0 && split == Split::train)
    body += reads
                ? fmt::format("data = torch.utils.data.Subset(data, range({}))\n", f.query.samples)
                : fmt::format("x, y = x[:{0}], y[:{0}]\n", data.limit);
  if (!by_sample(f.spec, split)) {
    body += transforms_text(f, split) + "return TensorDataset(x, y)\n";
  } else {
    if (!reads) body += "data = TensorDataset(x, y)\n";
    body += fmt::format("return Transformed(data, {}_transform)\n", name);
    out = section(fmt::format("def {}_transform(x, y):\n", name) +
                  indent(transforms_text(f, split) + "return x, y\n", 4));
  }
  return out + section(fmt::format("def {}_data():\n", name) + indent(body, 4));
}

std::string torch_data_helpers(const TorchFacts& f) {
  const bool transformed =
      by_sample(f.spec, Split::train) || (f.spec.evaluate.on && by_sample(f.spec, Split::test));
  return transformed ? section(kTransformed) : "";
}

bool torch_draws(const Spec& spec) { return std::ranges::any_of(spec.data.transforms, is_random); }

void write_torch_arrays(const Spec& spec, const TorchExport& query) {
  const Choice& dataset = spec.data.dataset;
  const auto& type = type_of<DatasetType>(dataset);
  if (type.torch) return;
  constexpr size_t kMostArrayBytes = kGiB;
  size_t bytes = 0;
  const auto each_split = [&](bool sizes_only, auto&& visit) {
    for (const Split split : {Split::train, Split::test}) {
      if (split == Split::test && !spec.evaluate.on) continue;
      LoadQuery load = query_of(spec, split);
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
