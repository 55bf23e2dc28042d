#include "data/guess/guess.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/count.h"
#include "base/fail.h"
#include "base/lower_case.h"
#include "base/units.h"
#include "data/check_samples.h"
#include "data/guess/image_layout.h"
#include "data/readers/bytes.h"
#include "formats/json.h"
#include "spec/tree.h"

namespace dpt {
namespace {

namespace fs = std::filesystem;

const DatasetType* find_type(std::string_view name) {
  const auto found = std::ranges::find(dataset_table(), name, &DatasetType::name);
  return found == dataset_table().end() ? nullptr : &*found;
}

// fashion-mnist and FashionMNIST are fashion_mnist.
std::string bare(std::string_view name) {
  std::string out;
  for (const char c : lower_case(std::string(name)))
    if (c != '_' && c != '-') out += c;
  return out;
}

// The settings after the data set's name, as a spec would give them.
std::any settings_of(const DatasetType& type, const DataGuess& g) {
  std::string yaml;
  for (const DataGuess::Setting& s : g.settings)
    yaml += fmt::format("{}: {}\n", s.key, s.is_path ? Json(s.value).dump() : s.value);
  const SourceFile file{.path = "", .text = yaml};
  Diagnostics d;
  Node node = read_yaml(file, d);
  anchor_settings(node, type);
  std::any settings = type.decode(node, {fmt::format("dataset '{}'", type.name), {}}, d);
  if (!d.ok()) fail(Fault::spec, "dataset '{}': {}", type.name, d.render());
  return settings;
}

bool gives_test_set(const DatasetType& type, const DataGuess& g) {
  const bool given = std::ranges::any_of(
      g.settings, [](const auto& s) { return s.is_path && s.key.starts_with("test_"); });
  return given || type.has_test_set == nullptr;
}

// Throws if numbers are not finite. Images are not decoded.
void refuse_broken(const Dataset& d, std::string_view set, const std::string& path) {
  const SampleReport report = check_samples(d, set, 0);
  if (!report.problems.empty()) fail(Fault::data, "{}: {}", path, fmt::join(report.problems, "; "));
}

void load(DataGuess& g, const std::string& path) {
  const DatasetType& type = *find_type(g.type);
  const std::any settings = settings_of(type, g);
  g.ignore_index = ignored_label(g);
  if (g.ignore_index)
    g.notes.push_back(
        fmt::format("targets of {} count as targets without a class", *g.ignore_index));
  g.train = type.load(
      settings, {.split = Split::train, .ignore_index = g.ignore_index, .binary_labels = true});
  if (gives_test_set(type, g))
    g.test = type.load(
        settings, {.split = Split::test, .ignore_index = g.ignore_index, .binary_labels = true});
  refuse_broken(g.train, "training", path);
  if (g.test) refuse_broken(*g.test, "test", path);
  measure_data(g);
}

// A built-in data set that needs no settings.
DataGuess guess_name(const std::string& word) {
  const DatasetType* found = nullptr;
  for (const DatasetType& type : dataset_table())
    if (bare(type.name) == bare(word)) found = &type;
  if (found == nullptr) {
    std::vector<std::string_view> known;
    for (const DatasetType& type : dataset_table()) known.push_back(type.name);
    fail(Fault::data,
         "there is no file, folder or data set '{:.60}'; {}. Name a CSV file, a text file, a "
         "folder of images or of arrays, or a data set",
         word, suggestion(word, known));
  }
  for (const KeyDoc& k : found->describe())
    if (k.required())
      fail(Fault::spec,
           "'{0}' is a file format; name your file: dptrain init FILE (see `dptrain explain {0}`)",
           found->name);
  DataGuess g{.type = std::string(found->name), .name = std::string(found->name)};
  g.notes.push_back(fmt::format("{}: a data set that dptrain knows", found->name));
  return g;
}

// A text is cut into sequences; the last tenth is for the evaluation.
DataGuess guess_text(const std::string& path) {
  constexpr int64_t kUsual = 64, kFewest = 8, kSequences = 20;
  const auto characters = static_cast<int64_t>(open_bytes(path)->most_bytes());
  const int64_t length = std::min(kUsual, characters / kSequences);
  if (length < kFewest)
    fail(Fault::data, "{} has {}; a character model needs at least a few hundred", path,
         counted(characters, "character"));
  DataGuess g{.type = "text", .name = fs::path(path).stem().string()};
  g.notes.push_back(fmt::format("{}: a text of {}", path, counted(characters, "character")));
  g.settings = {{"path", path, "relative to this file", true},
                {"sequence_length", std::to_string(length), "characters per sample"},
                {"test_share", "0.1", "share of the text, at its end, for the evaluation"}};
  return g;
}

// Whether the first bytes are those of a text: no control characters but tabs and line ends.
bool is_text(const std::string& path) {
  const std::unique_ptr<ByteSource> source = open_bytes(path);
  if (source->compressed() || source->most_bytes() == 0) return false;
  std::vector<std::byte> first(std::min<uint64_t>(source->most_bytes(), 4 * kKiB));
  source->read(first, "the text");
  return std::ranges::none_of(first, [](std::byte b) {
    const auto c = std::to_integer<unsigned char>(b);
    return c < 32 && c != '\t' && c != '\n' && c != '\r' && c != '\f';
  });
}

DataGuess guess_folder(const std::string& path) {
  if (holds_image_folders(path)) return guess_images(path);
  if (holds_arrays(path)) return guess_arrays(path);
  if (const std::string problem = loose_images(path); !problem.empty())
    fail(Fault::data, "{}", problem);
  const std::string unread = unread_files(path);
  fail(Fault::data,
       "{} holds neither folders of images, one per class (CLASS/1.jpg or "
       "train/CLASS/1.jpg), nor .npy or IDX files{}; name a file in it, such as a CSV",
       path,
       unread.empty()
           ? ""
           : fmt::format(", but files of types that are not read: {}. Convert them", unread));
}

DataGuess guess_file(const GuessQuery& query) {
  const std::string& path = query.path;
  const std::string ending = bare(fs::path(path).extension().string());
  if (ending == ".csv" || ending == ".tsv") return guess_csv(query);
  if (ending == ".npy" || path.ends_with(".npy.gz") || path.find("-ubyte") != path.npos)
    return guess_arrays(path);
  if (ending == ".npz") fail(Fault::data, "{}", npz_problem(path));
  if (path.ends_with(".csv.gz") || path.ends_with(".tsv.gz"))
    fail(Fault::data, "{} is compressed with gzip; unpack it with gunzip", path);
  if (!is_text(path))
    fail(Fault::data,
         "{} is not a CSV file, a text file or an array; dptrain reads .csv, .tsv, .npy, IDX and "
         "text files, and folders of images",
         path);
  return query.asks_for_table() ? guess_csv(query) : guess_text(path);
}

}  // namespace

std::string yaml_scalar(std::string_view text) {
  const auto safe = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.' || c == '/';
  };
  const std::string word = bare(text);
  const bool is_word = !text.empty() && std::ranges::all_of(text, safe) && !text.starts_with('-') &&
                       !(text[0] >= '0' && text[0] <= '9') &&
                       !(text[0] == '.' && !text.starts_with("./") && !text.starts_with("../"));
  for (const char* other : {"true", "false", "null", "none", "yes", "no", "on", "off", "y", "n"})
    if (word == other) return Json(text).dump();
  return is_word ? std::string(text) : Json(text).dump();
}

DataGuess guess_data(const GuessQuery& query) {
  std::error_code ignored;
  const bool is_folder = fs::is_directory(query.path, ignored);
  const bool exists = is_folder || fs::exists(query.path, ignored);
  DataGuess g = is_folder ? guess_folder(query.path)
                : exists  ? guess_file(query)
                          : guess_name(query.path);
  if (query.asks_for_table() && !g.is_table)
    fail(Fault::spec,
         "--target, --header, --missing, --decimal, --exclude and --categories are for tables, but "
         "{} is read as '{}'",
         query.path, g.type);
  load(g, query.path);
  return g;
}

}  // namespace dpt
