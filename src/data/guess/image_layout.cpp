#include "data/guess/image_layout.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <map>
#include <set>
#include <span>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/count.h"
#include "base/fail.h"
#include "base/lower_case.h"
#include "base/units.h"
#include "data/image_files.h"
#include "data/readers/image.h"

namespace dpt {
namespace {

namespace fs = std::filesystem;

// The entries of a folder, sorted; none if it cannot be read.
std::vector<fs::path> entries(const fs::path& folder) {
  std::vector<fs::path> out;
  std::error_code error;
  for (auto at = fs::directory_iterator(folder, error); !error && at != fs::directory_iterator();
       at.increment(error))
    out.push_back(at->path());
  std::ranges::sort(out);
  return out;
}

std::vector<fs::path> folders(const fs::path& folder) {
  std::vector<fs::path> out = entries(folder);
  std::erase_if(out, [](const fs::path& p) {
    std::error_code none;
    return !fs::is_directory(p, none) || is_hidden(p.filename().string());
  });
  return out;
}

std::vector<fs::path> images(const fs::path& folder) {
  std::vector<fs::path> out = entries(folder);
  std::erase_if(out, [](const fs::path& p) { return !is_image_ending(p.extension().string()); });
  return out;
}

std::string lower_name(const fs::path& path) { return lower_case(path.filename().string()); }

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::ranges::find(names, name) != names.end();
}

// The first file in the folder or below it whose ending fits; empty: there is none.
template <class Fits>
fs::path file_below(const fs::path& folder, Fits fits) {
  std::error_code error;
  const auto options = fs::directory_options::skip_permission_denied;
  for (auto at = fs::recursive_directory_iterator(folder, options, error);
       !error && at != fs::recursive_directory_iterator(); at.increment(error))
    if (fits(lower_name(at->path().extension()))) return at->path();
  return {};
}

// The subfolders with images, in them or below.
std::vector<fs::path> image_folders(const fs::path& folder) {
  std::vector<fs::path> out = folders(folder);
  std::erase_if(out, [](const fs::path& f) { return file_below(f, is_image_ending).empty(); });
  return out;
}

// Whether a folder is named as the masks or the labels of images.
bool is_target(const fs::path& f) {
  return is_one_of(lower_name(f), {"mask", "masks", "label", "labels", "annotation", "annotations",
                                   "segmentation", "segmentations", "segmentationclass",
                                   "segmentationobject", "targets", "ground_truth", "gt"});
}

bool is_input(const fs::path& f) {
  return is_one_of(lower_name(f),
                   {"image", "images", "img", "imgs", "input", "inputs", "jpegimages"});
}

enum class SplitName { none, train, test, validation };

// By the name of the folder: train, Training, train_set and train2017 hold training sets.
SplitName split_name(const fs::path& folder) {
  std::string name = lower_name(folder);
  std::erase_if(name, [](unsigned char c) { return std::isalpha(c) == 0; });
  for (const std::string_view end : {"set", "data", "images"})
    if (name.ends_with(end)) name.resize(name.size() - end.size());
  if (is_one_of(name, {"train", "training"})) return SplitName::train;
  if (is_one_of(name, {"test", "testing"})) return SplitName::test;
  if (is_one_of(name, {"val", "valid", "validation"})) return SplitName::validation;
  return SplitName::none;
}

// Files of labels beside folders of images.
std::vector<std::string> tables(const fs::path& folder) {
  std::vector<std::string> out;
  for (const fs::path& file : entries(folder))
    if (is_one_of(lower_name(file.extension()), {".csv", ".tsv", ".json"}))
      out.push_back(file.filename().string());
  return out;
}

// Throws if files beside the images name objects in them.
void refuse_objects(const fs::path& folder) {
  for (const fs::path& f : folders(folder)) {
    if (!is_target(f) || !file_below(f, is_image_ending).empty()) continue;
    const fs::path file = file_below(f, [](const std::string& ending) {
      return is_one_of(ending, {".txt", ".xml", ".json"});
    });
    if (!file.empty())
      fail(Fault::data,
           "{} holds images and {}/ with {} files, as for object detection (YOLO, Pascal VOC, "
           "COCO), which dptrain does not train; to classify the objects, cut each out of its "
           "image, and save it as CLASS/1.jpg",
           folder.string(), f.filename().string(), lower_name(file.extension()));
  }
}

// Throws if the subfolders with images are no classes: a single one, or images and their masks or
// boxes. Tables beside the parent may have the labels.
void check_classes(const fs::path& folder, const fs::path& parent) {
  const std::vector<fs::path> all = image_folders(folder);
  const auto input = std::ranges::find_if(all, is_input);
  const auto mask = std::ranges::find_if(all, is_target);
  if (input != all.end() && mask != all.end() &&
      std::ranges::all_of(all, [](const fs::path& f) { return is_input(f) || is_target(f); }))
    fail(Fault::data,
         "{0} holds {1}/ and {2}/, which look like images and their masks, not like classes; for "
         "one class per pixel save them as arrays in a folder: x.npy, uint8 [N, channels, height, "
         "width], and y.npy, uint8 [N, height, width], the class numbers from 0; then `dptrain "
         "init` that folder",
         folder.string(), input->filename().string(), mask->filename().string());
  if (input != all.end()) refuse_objects(folder);
  if (all.size() != 1 || (folders(folder).size() > 1 && input == all.end())) return;
  std::vector<std::string> labels = tables(folder);
  if (labels.empty()) labels = tables(parent);
  fail(Fault::data, "{} holds images in one subfolder only, {}/{}; {}", folder.string(),
       all[0].filename().string(),
       labels.empty() ? "" : fmt::format(", and {}, which is not read", fmt::join(labels, ", ")),
       !image_folders(all[0]).empty()
           ? fmt::format("if its subfolders are the classes, write: dptrain init {}",
                         all[0].string())
           : fmt::format("each class needs a subfolder of its own: move the images to {}",
                         (folder / "CLASS" / "1.jpg").string()));
}

// A shell's word: in single quotes.
std::string quoted(std::string text) {
  for (size_t at = 0; (at = text.find('\'', at)) != text.npos; at += 4)
    text.replace(at, 1, "'\\''");
  return "'" + text + "'";
}

// Whether the beginning of a table has the name of one of the first of these files.
bool names_one_of(const fs::path& table, const std::vector<fs::path>& files) {
  constexpr size_t kLooked = 64 * kKiB, kFiles = 20, kShortest = 4;
  std::string text(kLooked, '\0');
  std::ifstream in(table, std::ios::binary);
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(in.gcount()));
  const auto first = std::span(files).first(std::min(kFiles, files.size()));
  return std::ranges::any_of(first, [&](const fs::path& file) {
    const std::string stem = file.stem().string();
    return text.find(file.filename().string()) != text.npos ||
           (stem.size() >= kShortest && text.find(stem) != text.npos);
  });
}

// A command that writes a table of the images and their classes, if their names begin with the
// class, as in american_bulldog_12.jpg; else empty.
std::string listed_by_names(const std::string& folder, const std::vector<fs::path>& files) {
  constexpr std::string_view kBehind = "0123456789 _.()-";  // the class
  constexpr size_t kMostShown = 3;
  std::map<std::string, size_t> counts;
  std::set<std::string> endings;
  for (const fs::path& file : files) {
    const std::string name = file.stem().string();
    ++counts[name.substr(0, name.find_last_not_of(kBehind) + 1)];
    endings.insert(lower_name(file.extension()).substr(1));
  }
  if (counts.size() < 2 || counts.contains("") ||
      std::ranges::any_of(counts, [](const auto& c) { return c.second < 2; }))
    return "";
  std::vector<std::string> shown;
  for (const auto& [name, count] : counts)
    if (shown.size() < kMostShown) shown.push_back(name);
  const std::string table = quoted((fs::path(folder) / "classes.csv").string());
  return fmt::format(
      ". If their names begin with the class ({}{}), write a table of them: (echo file,class; ls "
      "{} | grep "
      "-iE '\\.({})$' | sed -E 's/^(.*[^{}])[{}]*\\.[^.]*$/\"&\",\"\\1\"/') > {}, then run: "
      "dptrain init {}",
      fmt::join(shown, ", "), shown.size() < counts.size() ? ", ..." : "", quoted(folder),
      fmt::join(endings, "|"), kBehind, kBehind, table, table);
}

void note_unused(const fs::path& folder, std::string_view what, ImageLayout& out) {
  if (const size_t count = images(folder).size(); count > 0)
    out.notes.push_back(
        fmt::format("{0} is not used as a {1} set: its {2} in no folders of classes; `dptrain "
                    "predict RUN {0}` reads them",
                    folder.string(), what, counted(count, "image lies", "images lie")));
}

}  // namespace

ImageLayout image_layout(const std::string& folder) {
  const fs::path path = folder;
  const std::vector<fs::path> all = image_folders(path);
  const auto named = [&](SplitName split) {
    const auto found = std::ranges::find(all, split, split_name);
    return found == all.end() ? fs::path() : *found;
  };
  // A class may be named `train`, beside others.
  const fs::path train = named(SplitName::train);
  const bool only_splits = std::ranges::find(all, SplitName::none, split_name) == all.end();
  const bool split = only_splits || (!train.empty() && !image_folders(train).empty());
  if (split && train.empty())
    fail(Fault::data, "{} holds {}/, but no train/ with the training set", folder,
         all[0].filename().string());
  ImageLayout out{.train = (split ? train : path).string()};
  if (split && image_folders(train).empty()) {
    refuse_objects(path);
    fail(Fault::data, "{}", loose_images(out.train));
  }
  check_classes(out.train, path);
  for (const fs::path& one : folders(out.train)) out.classes.push_back(one.filename().string());
  if (!split) return out;
  const auto set = [&](SplitName name, std::string_view what) {
    const fs::path found = named(name);
    if (!found.empty() && image_folders(found).empty()) note_unused(found, what, out);
    return found.empty() || image_folders(found).empty() ? "" : found.string();
  };
  out.test = set(SplitName::test, "test");
  out.validation = set(SplitName::validation, "validation");
  return out;
}

bool holds_image_folders(const std::string& folder) { return !image_folders(folder).empty(); }

std::string loose_images(const std::string& folder) {
  const std::vector<fs::path> files = images(folder);
  if (files.empty()) return "";
  const auto table = [&]() -> std::string {
    for (const fs::path& one : {fs::path(folder), fs::path(folder).parent_path()})
      for (const fs::path& file : entries(one.empty() ? "." : one))
        if (lower_name(file.extension()) == ".csv")
          if (names_one_of(file, files))
            return fmt::format("; if {} names them, run: dptrain init {}", file.string(),
                               quoted(file.string()));
    return "";
  };
  return fmt::format(
      "{0} holds {1} but no class folders; each class needs its own subfolder: move the images to "
      "{0}/CLASS/1.jpg{2}{3}",
      folder, counted(files.size(), "image"), table(), listed_by_names(folder, files));
}

std::string unread_files(const std::string& folder) {
  constexpr std::array<std::string_view, 11> kEndings = {
      ".gif", ".heic", ".heif", ".avif", ".svg", ".jp2", ".npz", ".mat", ".h5", ".parquet", ".pkl"};
  std::vector<std::string> found;
  std::vector<fs::path> all = folders(folder);
  all.emplace_back(folder);
  for (const fs::path& one : all)
    for (const fs::path& file : entries(one))
      if (std::ranges::find(kEndings, lower_name(file.extension())) != kEndings.end())
        found.push_back(file.string());
  return count_by_ending(found);
}

}  // namespace dpt
