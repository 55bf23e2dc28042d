#include "data/tables.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "base/count.h"
#include "base/fail.h"
#include "base/installation.h"
#include "data/readers/bytes.h"
#include "data/readers/cache.h"

namespace dpt {
namespace {

namespace fs = std::filesystem;

// The folders in which a named data set may lie, by priority, without duplicates.
std::vector<std::string> folders_of(const std::string& name, const std::string& given,
                                    const std::string& folder) {
  std::string dashed = name, joined = name;
  std::ranges::replace(dashed, '_', '-');
  std::erase(joined, '_');
  std::vector<std::string> out;
  const auto add = [&](const fs::path& path) {
    const std::string text = path.lexically_normal().string();
    if (std::ranges::find(out, text) == out.end()) out.push_back(text);
  };
  const auto add_names = [&](const fs::path& parent) {
    for (const std::string& spelling : {name, dashed, joined}) add(parent / spelling);
  };
  if (!given.empty()) {
    add(given);
    add_names(given);
    return out;
  }
  if (const char* data = std::getenv("DPTRAIN_DATA")) {  // NOLINT(concurrency-mt-unsafe): none set
    add_names(data);
    add(data);
  }
  const fs::path here = folder.empty() ? "." : folder;
  for (const fs::path& parent : {here, here / "..", fs::path(".")}) add_names(parent / "datasets");
  if (const std::string cache = cache_folder(); !cache.empty()) add_names(cache);
  return out;
}

// The path of the file or its .gz; empty if neither exists.
std::string plain_or_gzip(const fs::path& file) {
  std::error_code none;
  for (const std::string& path : {file.string(), file.string() + ".gz"})
    if (fs::is_regular_file(path, none)) return path;
  return "";
}

// What downloads data sets, as a shell finds it here: a checkout's, else the installed one.
std::string fetch_script() {
  constexpr const char* kScript = "tools/fetch_data.sh";
  std::error_code none;
  const std::string installed = fs::exists(kScript, none) ? "" : installed_file(kScript);
  return installed.empty() ? kScript : installed;
}

// " at [2, 7]": where element `i` of a table is within its sample; empty for a single element.
std::string index_text(const Table& table, size_t i) {
  const Shape sample = table.sample();
  if (sample.rank() == 0) return "";
  int64_t rest = static_cast<int64_t>(i) % sample.elements();
  std::string out;
  for (int d = sample.rank() - 1; d >= 0; --d) {
    out = fmt::format("{}{}{}", rest % sample[d], out.empty() ? "" : ", ", out);
    rest /= sample[d];
  }
  return " at [" + out + "]";
}

// What may be meant by a label that is no class. A label that marks targets to leave out is the
// only one outside of the classes, and far from them.
std::string label_hint(std::span<const int32_t> labels, int64_t classes, int32_t wrong,
                       std::optional<int64_t> ignore, ClassesKey key) {
  const auto is_sign = [](int32_t l) { return l == 1 || l == -1; };
  if (wrong == -1 && std::ranges::all_of(labels, is_sign))
    return "; targets of 1 and -1, as soft_margin_loss and cosine_embedding_loss take them, are "
           "numbers: save them as float32 (numpy: y.astype(\"float32\"))";
  int64_t smallest = wrong, largest = wrong;
  bool single = true;
  for (const int64_t label : labels) {
    if (label == ignore) continue;
    smallest = std::min(smallest, label);
    largest = std::max(largest, label);
    single = single && (label == wrong || (label >= 0 && label < classes));
  }
  const bool from_one = smallest == 1 && largest == classes;
  constexpr int64_t kUsualMark = 255, kFar = 10;
  const bool far = wrong < 0 || wrong == kUsualMark || wrong >= kFar * classes;
  if (ignore && single && far && !from_one)
    return fmt::format("; if it marks targets to leave out, set `ignore_index: {}` of the loss",
                       wrong);
  if (key == ClassesKey::none || smallest < 0) return "";
  const bool automatic = key == ClassesKey::automatic;
  if (from_one)
    return fmt::format(
        "; the labels are 1..{}, but classes count from 0: {}", largest,
        automatic ? "write `classes: auto`"
                  : fmt::format("write `classes: {}`, or subtract 1 from all labels", largest + 1));
  return fmt::format("; if it is a class, write `classes: {}`{}", largest + 1,
                     automatic ? " or `classes: auto`" : "");
}

}  // namespace

NoTestSplit::NoTestSplit(std::string_view dataset, std::string_view keys)
    : Error(Fault::data, fmt::format("dataset '{}' has no test split: write {}", dataset, keys)) {}

bool has_test_set(const Choice& dataset) {
  const auto* const type = static_cast<const DatasetType*>(dataset.what);
  return type->has_test_set == nullptr || type->has_test_set(dataset.settings);
}

NewTable::NewTable(const TensorDesc& d) : desc(d) {
  constexpr size_t kMost = size_t{1} << 44;
  size_t bytes = size_of(d.dtype);
  bool fits = true;
  for (const int64_t extent : d.shape.extents())
    fits = fits && !__builtin_mul_overflow(bytes, static_cast<size_t>(extent), &bytes);
  if (!fits || bytes > kMost)
    fail(Fault::memory, "a table of {} {} is larger than the memory of any machine", d.shape.str(),
         name_of(d.dtype));
  data = allocate_bytes(bytes);
}

Table reshaped(const Table& table, const Shape& shape) {
  require(shape.elements() == table.desc.shape.elements(), "reshaped to another count of elements");
  require(table.stride == 0, "reshaped samples follow each other");
  return {{table.desc.dtype, shape}, table.data};
}

Table without_overlap(const Table& table) {
  if (table.step() == table.sample().elements()) return {table.desc, table.data};
  NewTable out(table.desc);
  const size_t element = size_of(table.desc.dtype);
  const size_t sample = static_cast<size_t>(table.sample().elements()) * element;
  const size_t step = static_cast<size_t>(table.step()) * element;
  for (size_t n = 0; n < static_cast<size_t>(table.size()); ++n)
    std::copy_n(table.data.get() + n * step, sample, out.data.get() + n * sample);
  return std::move(out).done();
}

Table with_channel(const Table& table) {
  const Shape& s = table.desc.shape;
  return s.rank() == 3 ? reshaped(table, {s[0], 1, s[1], s[2]}) : table;
}

Table as_classes(const Table& labels, int64_t& classes, const std::string& path,
                 std::optional<int64_t> ignore, int most_rank, ClassesKey key) {
  if (labels.desc.shape.rank() > most_rank || labels.desc.dtype == DType::f32)
    fail(Fault::data, "{} does not hold labels: it is {} {}, where whole numbers {} are needed",
         path, labels.desc.shape.str(), name_of(labels.desc.dtype),
         most_rank == 1 ? "[N]" : "[N, ...]");
  NewTable out({DType::i32, labels.desc.shape});
  const std::span<int32_t> to = out.as<int32_t>();
  if (labels.desc.dtype == DType::u8)
    std::ranges::copy(values_of<uint8_t>(labels), to.begin());
  else
    std::ranges::copy(values_of<int32_t>(labels), to.begin());
  if (classes == 0) {
    classes = 1;
    for (const int64_t label : to)
      if (label != ignore) classes = std::max(classes, label + 1);
  }
  for (size_t i = 0; i < to.size(); ++i)
    if ((to[i] < 0 || to[i] >= classes) && to[i] != ignore)
      fail(
          Fault::data,
          "{}: the label of sample {} (counted from 0){} is {}, which is not one of the {} classes "
          "0..{}{}",
          path, static_cast<int64_t>(i) / labels.sample().elements(), index_text(labels, i), to[i],
          classes, classes - 1, label_hint(to, classes, to[i], ignore, key));
  return std::move(out).done();
}

void check_counts(const Table& inputs, const std::string& inputs_path, const Table& targets,
                  const std::string& targets_path) {
  if (inputs.size() != targets.size())
    fail(Fault::data, "{} holds {}, but {} holds {}: inputs and targets must have the same count",
         inputs_path, counted(inputs.size(), "sample"), targets_path, targets.size());
}

std::string describe(const std::string& name, const Dataset& d, const std::string& from) {
  std::string text = fmt::format("{}: {} x {} {}, ", name, d.size(), d.inputs.sample().str(),
                                 name_of(d.inputs.desc.dtype));
  text += d.classes > 0 ? counted(d.classes, "class", "classes")
                        : fmt::format("targets {} {}", d.targets.sample().str(),
                                      name_of(d.targets.desc.dtype));
  return from.empty() ? text : text + ", from " + from;
}

void take_first(Dataset& d, int64_t samples) {
  const int64_t size = d.size();
  if (samples >= size) return;
  for (Table* table : {&d.inputs, &d.targets})
    table->desc.shape = table->desc.shape.with(0, samples);
  const std::string count = fmt::format(": {} x ", size);  // the format of describe()
  if (const size_t at = d.description.find(count); at != std::string::npos)
    d.description.replace(at, count.size(), fmt::format(": the first {} of {} x ", samples, size));
}

std::vector<std::string> find_files(const std::string& name, const std::string& given,
                                    const std::string& folder,
                                    const std::vector<std::string>& files,
                                    const std::vector<std::vector<std::string>>& others) {
  std::vector<std::vector<std::string>> sets = {files};
  sets.insert(sets.end(), others.begin(), others.end());
  const std::vector<std::string> folders = folders_of(name, given, folder);
  for (const std::string& folder_path : folders)
    for (const std::vector<std::string>& set : sets) {
      std::vector<std::string> found;
      for (const std::string& file : set)
        found.push_back(plain_or_gzip(fs::path(folder_path) / file));
      if (std::ranges::none_of(found, &std::string::empty)) return found;
    }
  std::vector<std::string> wanted;
  for (const std::vector<std::string>& set : sets)
    wanted.push_back(fmt::format("{}", fmt::join(set, " and ")));
  fail(Fault::data,
       "the files of {} were not found: {}, each plain or .gz, in one of\n"
       "  {}\n"
       "Run {} {}, or set DPTRAIN_DATA, or write `dataset: synthetic_images` or "
       "`synthetic_tokens`, which need no files.",
       name, fmt::join(wanted, "; or "), fmt::join(folders, "\n  "), fetch_script(), name);
}

}  // namespace dpt
