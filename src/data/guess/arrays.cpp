// Finds the inputs and targets among NPY and IDX files.
#include <algorithm>
#include <filesystem>
#include <initializer_list>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/fail.h"
#include "base/image_shape.h"
#include "base/lower_case.h"
#include "data/guess/guess.h"
#include "data/readers/npy.h"

namespace dpt {
namespace {

namespace fs = std::filesystem;

struct Pair {
  std::string inputs, targets;
  bool complete() const { return !inputs.empty() && !targets.empty(); }
};

std::vector<std::string> files_in(const std::string& folder) {
  std::vector<std::string> out;
  std::error_code error;
  for (auto at = fs::directory_iterator(folder, error); !error && at != fs::directory_iterator();
       at.increment(error)) {
    std::error_code none;
    if (at->is_regular_file(none)) out.push_back(at->path().filename().string());
  }
  std::ranges::sort(out);
  return out;
}

bool is_npy(const std::string& name) { return name.ends_with(".npy") || name.ends_with(".npy.gz"); }
bool is_idx(const std::string& name) {
  return name.find("idx1-ubyte") != name.npos || name.find("idx3-ubyte") != name.npos ||
         name.ends_with(".idx") || name.ends_with(".idx.gz");
}

// The file whose name, without its ending and in small letters, is one of these; empty: none.
std::string named(const std::vector<std::string>& files, const std::vector<std::string>& names) {
  for (const std::string& name : names)
    for (const std::string& file : files)
      if (is_npy(file) && lower_case(file.substr(0, file.find(".npy"))) == name) return file;
  return "";
}

const std::vector<std::string> kInputs = {"x", "inputs", "input", "images", "features", "data"};
const std::vector<std::string> kTargets = {"y", "targets", "target", "labels", "label", "classes"};

// The names with a word before or after them: x_test, test_x.
std::vector<std::string> with(const std::vector<std::string>& names, const std::string& word) {
  std::vector<std::string> out;
  for (const std::string& n : names)
    for (const char* between : {"_", "-", ""})
      out.push_back(n + between + word), out.push_back(word + between + n);
  return out;
}

Pair npy_pair(const std::vector<std::string>& files, const std::string& word) {
  if (word.empty()) return {named(files, kInputs), named(files, kTargets)};
  return {named(files, with(kInputs, word)), named(files, with(kTargets, word))};
}

Pair idx_pair(const std::vector<std::string>& files, std::initializer_list<const char*> words) {
  Pair out;
  for (const std::string& file : files) {
    const std::string name = lower_case(file);
    if (!is_idx(name) ||
        std::ranges::none_of(words, [&](const char* w) { return name.find(w) != name.npos; }))
      continue;
    if (name.find("label") != name.npos || name.find("idx1") != name.npos)
      out.targets = out.targets.empty() ? file : out.targets;
    else
      out.inputs = out.inputs.empty() ? file : out.inputs;
  }
  return out;
}

void add(DataGuess& g, const std::string& folder, const Pair& train, const Pair& test,
         std::string_view inputs, std::string_view targets) {
  const auto path = [&](const std::string& file) { return (fs::path(folder) / file).string(); };
  const std::string in(inputs), to(targets);
  g.settings.push_back({in, path(train.inputs), "the inputs, one sample after another", true});
  g.settings.push_back({to, path(train.targets), "what to predict for each of them", true});
  if (!test.complete()) return;
  g.settings.push_back({"test_" + in, path(test.inputs), "samples for the evaluation", true});
  g.settings.push_back({"test_" + to, path(test.targets), "and their targets", true});
}

// The validation set, and arrays that no set has, for the notes of an `npy` data set.
void add_validation(DataGuess& g, const std::string& folder, const std::vector<std::string>& files,
                    std::vector<std::string> used) {
  const auto path = [&](const std::string& file) { return (fs::path(folder) / file).string(); };
  for (const char* word : {"val", "valid", "validation"}) {
    const Pair pair = npy_pair(files, word);
    if (!g.validation.empty() || !pair.complete()) continue;
    g.validation = {{g.settings[0].key, path(pair.inputs), "", true},
                    {g.settings[1].key, path(pair.targets), "", true}};
    used.insert(used.end(), {pair.inputs, pair.targets});
  }
  std::vector<std::string> others;
  for (const std::string& file : files)
    if (is_npy(file) && std::ranges::find(used, file) == used.end()) others.push_back(file);
  if (!others.empty())
    g.notes.push_back(
        fmt::format("not used: {}; a set is a pair of arrays such as x_val.npy and "
                    "y_val.npy, or x_test.npy and y_test.npy",
                    fmt::join(others, ", ")));
}

std::string name_of_folder(const std::string& folder) {
  const fs::path path = fs::absolute(folder).lexically_normal();
  return (path.has_filename() ? path : path.parent_path()).filename().string();
}

}  // namespace

bool holds_arrays(const std::string& folder) {
  const std::vector<std::string> files = files_in(folder);
  return std::ranges::any_of(
      files, [](const std::string& f) { return is_npy(f) || is_idx(lower_case(f)); });
}

std::string npz_problem(const std::string& path) {
  return fmt::format(
      "{} is an archive of arrays, which dptrain does not read; save each array by "
      "numpy.save(\"x.npy\", x)",
      path);
}

DataGuess guess_arrays(const std::string& path) {
  std::error_code ignored;
  const bool is_folder = fs::is_directory(path, ignored);
  const std::string parent = fs::path(path).parent_path().string();
  const std::string folder = is_folder ? path : parent.empty() ? "." : parent;
  const std::vector<std::string> files = files_in(folder);
  DataGuess g;
  g.name = name_of_folder(folder);
  Pair train = npy_pair(files, "train"), test = npy_pair(files, "test");
  if (!train.complete()) train = npy_pair(files, "");
  if (train.complete()) {
    g.type = "npy";
    add(g, folder, train, test, "inputs", "targets");
  } else if (train = idx_pair(files, {"train"}); train.complete()) {
    g.type = "idx";
    add(g, folder, train, idx_pair(files, {"t10k", "test"}), "images", "labels");
  } else if (train = idx_pair(files, {""}); train.complete()) {
    g.type = "idx";
    add(g, folder, train, {}, "images", "labels");
  } else {
    for (const std::string& file : files)
      if (lower_case(file).ends_with(".npz"))
        fail(Fault::data, "{}", npz_problem((fs::path(folder) / file).string()));
    fail(Fault::data,
         "{} holds {}, of which none is an input and another its targets by name; name them x.npy "
         "and y.npy (x_test.npy and y_test.npy for a test set), or write the data set as "
         "`dptrain explain npy` shows",
         folder, fmt::join(files, ", "));
  }
  g.notes.push_back(fmt::format("{}: inputs in {}, targets in {}{}", folder, train.inputs,
                                train.targets, g.settings.size() > 2 ? ", and a test set" : ""));
  if (g.type != "npy") return g;
  std::vector<std::string> used = {train.inputs, train.targets};
  if (test.complete()) used.insert(used.end(), {test.inputs, test.targets});
  if (is_folder) add_validation(g, folder, files, used);
  const TensorDesc inputs = npy_desc(g.settings[0].value);
  // The rows of gray images are no channels.
  g.standardizes = inputs.dtype == DType::f32 && !like_gray_image(inputs.shape.tail(1));
  if (g.standardizes)
    g.settings.push_back({"standardize", "true", "numbers become (x - mean) / std, about -1..1"});
  return g;
}

}  // namespace dpt
