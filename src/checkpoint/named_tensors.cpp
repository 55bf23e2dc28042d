#include "checkpoint/named_tensors.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace dpt {
namespace {

constexpr std::string_view kOptimizer = "optimizer";

// A tensor of a file and its memory in the flat buffers.
struct Home {
  std::string name;
  TensorDesc desc;  // with its layout in memory
  std::byte* memory = nullptr;
  TensorDesc of_file() const { return {desc.dtype, desc.shape}; }
};

// `weights` may be null if nothing is read or written.
std::vector<Home> homes_of(const Graph& graph, const std::vector<Location>& location,
                           float* weights) {
  std::vector<Home> out;
  for (ValueId v : graph.state())
    out.push_back({.name = graph[v].name,
                   .desc = graph[v].desc,
                   .memory = weights ? reinterpret_cast<std::byte*>(weights) +
                                           location[static_cast<size_t>(v)].offset
                                     : nullptr});
  return out;
}

// Every program has parameters and buffers at the same offsets.
std::vector<Home> homes_of_model(const CompiledModel& model, float* weights) {
  return homes_of(model.graph, model.programs.begin()->second.location, weights);
}

std::vector<Home> homes_of_states(const RunSettings& settings, const CompiledModel& model,
                                  const StateOf& state) {
  const std::vector<std::string> names = settings.state_names();
  std::vector<Home> out;
  for (size_t p = 0; p < model.graph.parameters.size(); ++p) {
    if (model.graph.gradients[p] == kNoValue) continue;  // frozen
    const Value& parameter = model.graph[model.graph.parameters[p]];
    for (size_t i = 0; i < names.size(); ++i)
      out.push_back({.name = parameter.name + "." + names[i],
                     .desc = parameter.desc,
                     .memory = reinterpret_cast<std::byte*>(state(static_cast<int>(i)) +
                                                            model.layout.offset[p])});
  }
  return out;
}

std::vector<NamedTensor> tensors(const std::vector<Home>& homes) {
  std::vector<NamedTensor> out;
  out.reserve(homes.size());
  for (const Home& h : homes) {
    out.push_back({.name = h.name, .desc = h.of_file(), .data = h.memory});
    if (h.desc.layout != Layout::plain) out.back().stored = h.desc;
  }
  return out;
}

// Whether two shapes differ at most in leading dimensions of 1. Bare parameters of PyTorch have
// them to be added to batches: [1, 197, 768] can be read as [197, 768].
bool alike(const Shape& a, const Shape& b) {
  const auto bare = [](const Shape& s) {
    std::span<const int64_t> extents = s.extents();
    while (!extents.empty() && extents.front() == 1) extents = extents.subspan(1);
    return extents;
  };
  return std::ranges::equal(bare(a), bare(b));
}

// Whether the file's tensor becomes the wanted one: floats and batch norm's counts are converted.
bool fits(const TensorDesc& of_file, const TensorDesc& wanted) {
  if (!alike(of_file.shape, wanted.shape)) return false;
  return of_file.dtype == wanted.dtype ||
         (wanted.dtype == DType::f32 && readable_as_floats(of_file.dtype)) ||
         (wanted.dtype == DType::i64 && readable_as_counts(of_file.dtype));
}

// PyTorch's before 0.4.1, and files that keep floats only, lack batch norm's counts. They matter
// only to averages over all batches (`momentum: none`), and begin at 0.
bool may_be_missing(std::string_view name) { return name.ends_with("num_batches_tracked"); }

const TensorFile::Entry* find_wrapped(const TensorFile& file, const std::string& name) {
  const auto is_wrapped = [&](const TensorFile::Entry& e) {
    return e.name.size() > name.size() && without_wrappers(e.name) == name;
  };
  const auto found = std::ranges::find_if(file.entries(), is_wrapped);
  return found == file.entries().end() ? nullptr : &*found;
}

// Wrappers of modules add to names. The weight of a layer that is a bare parameter in PyTorch has
// the layer's name: torchvision's `class_token`.
const TensorFile::Entry* find(const TensorFile& file, const std::string& name) {
  constexpr std::string_view kWeight = ".weight";
  if (const TensorFile::Entry* e = file.find(name)) return e;
  if (const TensorFile::Entry* e = find_wrapped(file, name)) return e;
  if (!name.ends_with(kWeight)) return nullptr;
  const std::string bare = name.substr(0, name.size() - kWeight.size());
  const TensorFile::Entry* e = file.find(bare);
  return e ? e : find_wrapped(file, bare);
}

// What all names of the file begin with if the model was a part of another module: "model." of
// Lightning's "model.0.weight". Empty: the file has names of the model.
std::string prefix_of(const TensorFile& file, const std::vector<Home>& homes) {
  if (std::ranges::any_of(homes, [&](const Home& h) { return find(file, h.name) != nullptr; }))
    return "";
  std::map<std::string, size_t> counts;
  for (const TensorFile::Entry& e : file.entries()) {
    const std::string name = without_wrappers(e.name);
    for (const Home& h : homes)
      if (name.ends_with("." + h.name)) ++counts[name.substr(0, name.size() - h.name.size())];
  }
  const auto most = std::ranges::max_element(counts, {}, [](const auto& c) { return c.second; });
  return most == counts.end() ? "" : most->first;
}

// "'a', 'b', 'c' and 4 more"
std::string listed(const std::vector<std::string>& names) {
  constexpr size_t kShown = 5;
  std::string out;
  for (size_t i = 0; i < std::min(names.size(), kShown); ++i)
    out += fmt::format("{}'{:.80}'", i == 0 ? "" : ", ", names[i]);
  return names.size() <= kShown ? out : out + fmt::format(" and {} more", names.size() - kShown);
}

const std::string kAverage = "." + std::string(kAverageState);

// Why the file does not hold exactly these tensors, judging by its header; empty if it does, or if
// it lacks only what may be missing.
// `found` receives the file's entry for each tensor, null if it is missing.
std::string misfit(const TensorFile& file, const std::vector<Home>& homes, std::string_view whose,
                   std::vector<const TensorFile::Entry*>& found) {
  const bool averages =
      std::ranges::any_of(homes, [](const Home& h) { return h.name.ends_with(kAverage); });
  std::vector<std::string> missing, extra, other;
  std::set<const TensorFile::Entry*> used;
  const std::string prefix = prefix_of(file, homes);
  for (const Home& h : homes) {
    const TensorDesc wanted = h.of_file();
    const TensorFile::Entry* e = found.emplace_back(find(file, prefix + h.name));
    used.insert(e);
    if (!e && !may_be_missing(h.name))
      missing.push_back(h.name);
    else if (e && !fits(e->desc, wanted) && other.size() < 5)
      other.push_back(fmt::format("its '{}' is {}{}, but the {}'s is {}{}", h.name,
                                  name_of(e->desc.dtype), e->desc.shape.str(), whose,
                                  name_of(wanted.dtype), wanted.shape.str()));
  }
  for (const TensorFile::Entry& e : file.entries())
    if (const bool ignored = whose == kOptimizer && !averages && e.name.ends_with(kAverage);
        !used.contains(&e) && !ignored)
      extra.push_back(e.name);
  std::vector<std::string> wrong;
  if (!missing.empty()) wrong.push_back("it has no " + listed(missing));
  if (!extra.empty())
    wrong.push_back(fmt::format("it has {}, which the {} does not have", listed(extra), whose));
  wrong.insert(wrong.end(), other.begin(), other.end());
  return fmt::format("{}", fmt::join(wrong, "; "));
}

// The file's entry for each tensor. Throws Error{fault} if the file does not hold exactly these.
std::vector<const TensorFile::Entry*> fitting(const TensorFile& file, const std::string& path,
                                              const std::vector<Home>& homes,
                                              std::string_view whose, Fault fault,
                                              std::string_view remedy) {
  std::vector<const TensorFile::Entry*> found;
  if (const std::string why = misfit(file, homes, whose, found); !why.empty())
    fail(fault, "{} does not fit the {}: {}{}", path, whose, why, remedy);
  return found;
}

// found: the file's entry for each tensor; null: the tensor keeps its values.
void read(const TensorFile& file, const std::vector<Home>& homes,
          const std::vector<const TensorFile::Entry*>& found) {
  std::vector<std::byte> bytes;
  for (size_t i = 0; i < homes.size(); ++i) {
    if (found[i] == nullptr) continue;
    const Home& h = homes[i];
    const size_t size = h.of_file().bytes();
    const auto read_to = [&](std::byte* to) {
      if (h.desc.dtype == DType::f32)
        read_floats(file, *found[i], {reinterpret_cast<float*>(to), size / sizeof(float)});
      else if (h.desc.dtype == DType::i64)
        read_counts(file, *found[i], {reinterpret_cast<int64_t*>(to), size / sizeof(int64_t)});
      else
        file.read(*found[i], {to, size});
    };
    if (h.desc.layout == Layout::plain) {
      read_to(h.memory);
      continue;
    }
    bytes.resize(size);
    read_to(bytes.data());
    copy_layout(h.desc.shape, size_of(h.desc.dtype), Layout::plain, bytes.data(), h.desc.layout,
                h.memory);
  }
}

void read(const std::string& path, const std::vector<Home>& homes, std::string_view whose,
          Fault fault, std::string_view remedy) {
  const std::unique_ptr<const TensorFile> file = open_tensor_file(path);
  read(*file, homes, fitting(*file, path, homes, whose, fault, remedy));
}

// What a file holds of a model.
struct Overlap {
  // The file's entry for each tensor; null if it is missing or does not fit.
  std::vector<const TensorFile::Entry*> found;
  std::vector<std::string> missing, other, unused;
};

Overlap overlap(const TensorFile& file, const std::vector<Home>& homes) {
  Overlap out;
  std::set<const TensorFile::Entry*> used;
  const std::string prefix = prefix_of(file, homes);
  for (const Home& h : homes) {
    const TensorDesc wanted = h.of_file();
    const TensorFile::Entry* e = find(file, prefix + h.name);
    used.insert(e);
    const bool taken = e && fits(e->desc, wanted);
    out.found.push_back(taken ? e : nullptr);
    if (!e && !may_be_missing(h.name))
      out.missing.push_back(h.name);
    else if (e && !taken && e->desc.dtype == wanted.dtype)
      out.other.push_back(
          fmt::format("{} {}, in the file {}", h.name, wanted.shape.str(), e->desc.shape.str()));
    else if (e && !taken)
      out.other.push_back(fmt::format("{} {}{}, in the file {}{}", h.name, name_of(wanted.dtype),
                                      wanted.shape.str(), name_of(e->desc.dtype),
                                      e->desc.shape.str()));
  }
  for (const TensorFile::Entry& e : file.entries())
    if (!used.contains(&e)) out.unused.push_back(e.name);
  return out;
}

std::string text_of(const Overlap& o, const std::string& path) {
  const auto taken = o.found.size() - static_cast<size_t>(std::ranges::count(o.found, nullptr));
  std::string out = fmt::format("{} of {} tensors from {}", taken, o.found.size(), path);
  if (!o.missing.empty()) out += "; not in the file: " + listed(o.missing);
  if (!o.other.empty()) out += "; other shape: " + listed(o.other);
  if (!o.unused.empty())
    out += fmt::format("; unused in the file: {} ({})", o.unused.size(), listed(o.unused));
  return out;
}

// Throws Error{fault} if nothing fits.
Overlap some_overlap(const TensorFile& file, const std::vector<Home>& homes,
                     const std::string& path, Fault fault) {
  Overlap out = overlap(file, homes);
  if (std::ranges::count(out.found, nullptr) == std::ssize(out.found))
    fail(fault, "nothing in the file fits the model: {}; name another file", text_of(out, path));
  return out;
}

}  // namespace

std::vector<NamedTensor> model_tensors(const CompiledModel& model, const Buffers& buffers) {
  return tensors(homes_of_model(model, buffers.weights()));
}

std::vector<NamedTensor> state_tensors(const RunSettings& settings, const CompiledModel& model,
                                       const StateOf& state) {
  return tensors(homes_of_states(settings, model, state));
}

void read_model(const CompiledModel& model, const std::string& path, const Buffers& buffers,
                Fault fault, std::string_view remedy) {
  read(path, homes_of_model(model, buffers.weights()), "model", fault, remedy);
}

void read_weights(const Graph& graph, const std::vector<Location>& location, float* weights,
                  const std::string& path, Fault fault) {
  read(path, homes_of(graph, location, weights), "model", fault, "");
}

void check_model(const CompiledModel& model, const std::string& path, Fault fault,
                 std::string_view remedy) {
  fitting(*open_tensor_file(path), path, homes_of_model(model, nullptr), "model", fault, remedy);
}

void read_fitting(const CompiledModel& model, const std::string& path, const Buffers& buffers,
                  Fault fault) {
  const std::unique_ptr<const TensorFile> file = open_tensor_file(path);
  const std::vector<Home> homes = homes_of_model(model, buffers.weights());
  read(*file, homes, some_overlap(*file, homes, path, fault).found);
}

FittingTensors fitting_tensors(const CompiledModel& model, const std::string& path, Fault fault) {
  const std::unique_ptr<const TensorFile> file = open_tensor_file(path);
  const Overlap all = some_overlap(*file, homes_of_model(model, nullptr), path, fault);
  FittingTensors out{.names = {}, .text = text_of(all, path)};
  for (const TensorFile::Entry* e : all.found)
    if (e) out.names.push_back(e->name);
  return out;
}

bool read_states(const RunSettings& settings, const CompiledModel& model, const std::string& path,
                 const StateOf& state, Fault fault, std::string_view remedy) {
  std::vector<Home> homes = homes_of_states(settings, model, state);
  const bool without = settings.spec.ema && !has_averages(path);
  if (without) std::erase_if(homes, [](const Home& h) { return h.name.ends_with(kAverage); });
  read(path, homes, kOptimizer, fault, remedy);
  return !without;
}

bool has_averages(const std::string& path) {
  const std::unique_ptr<const TensorFile> file = open_tensor_file(path);
  return std::ranges::any_of(file->entries(),
                             [](const TensorFile::Entry& e) { return e.name.ends_with(kAverage); });
}

}  // namespace dpt
