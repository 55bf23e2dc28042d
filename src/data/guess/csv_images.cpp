#include "data/guess/csv_images.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/count.h"
#include "base/fail.h"
#include "base/lower_case.h"
#include "base/one_line.h"
#include "data/image_files.h"

namespace dpt {
namespace {

namespace fs = std::filesystem;

// "train/img0.jpg" of "train\\img0.jpg", which Windows writes.
std::string with_slashes(std::string text) {
  std::ranges::replace(text, '\\', '/');
  return text;
}

fs::path file_of(const std::string& folder, const std::string& name, const std::string& ending) {
  return fs::path(folder) / (with_slashes(name) + ending);
}

bool is_file(const std::string& folder, const std::string& name, const std::string& ending) {
  constexpr size_t kLongest = 1000;
  if (name.empty() || name.size() > kLongest) return false;
  const fs::path file = file_of(folder, name, ending);
  std::error_code none;
  return is_image_ending(file.extension().string()) && fs::is_regular_file(file, none);
}

// The split that a name tells of: "train" of train_images and training.csv; empty: none.
std::string_view split_of(std::string_view name) {
  for (const std::string_view split : {"train", "test", "val"})
    if (name.find(split) != name.npos) return split;
  return "";
}

// What is in a folder, also in "", the current one; nothing if it cannot be listed.
FolderListing listing_of(const fs::path& folder) {
  const std::string name = folder.empty() ? "." : folder.string();
  std::error_code error;
  const fs::directory_iterator first(name, error);
  return error ? FolderListing{} : list_folder(name);
}

// The table's folder, and folders in it. First those of the table's split, last those of others.
std::vector<std::string> folders_beside(const fs::path& table) {
  constexpr size_t kMost = 100;
  const fs::path own = table.parent_path();
  std::vector<std::string> out = {own.string()};
  for (const std::string& folder : listing_of(own).folders)
    if (out.size() < kMost) out.push_back((own / folder).string());
  const std::string_view split = split_of(table.stem().string());
  const auto rank = [&](const std::string& folder) {
    const std::string name = fs::path(folder).filename().string();
    const std::string_view of = folder == own ? "" : split_of(name);
    return of.empty() ? 1 : of == split ? 0 : 2;
  };
  std::ranges::stable_sort(out, {}, rank);
  return out;
}

// Fields of a column, spread over the lines.
struct Names {
  std::vector<std::string> texts;
  std::string first;  // "'img0' on line 2"
};

// The names of each of these columns.
std::map<size_t, Names> names_in(const std::string& path, const CsvFormat& format,
                                 const std::vector<size_t>& columns, size_t rows) {
  constexpr size_t kMost = 50;
  std::map<size_t, Names> out;
  const size_t step = std::max<size_t>(1, rows / kMost);
  size_t number = 0;
  scan_csv(path, format, [&](const CsvLine& line) {
    if (line.header || number++ % step != 0) return true;
    for (const size_t i : columns) {
      if (i >= line.fields.size() || line.fields[i].text.empty()) continue;
      const CsvField& f = line.fields[i];
      if (out[i].texts.empty())
        out[i].first = fmt::format("'{:.20}' on line {}", one_line(f.text), f.line);
      out[i].texts.emplace_back(f.text);
    }
    return true;
  });
  return out;
}

// Whether the texts are those of a few classes, which are no ids.
bool repeats(const Names& names) {
  const std::set<std::string> different(names.texts.begin(), names.texts.end());
  return different.size() * 2 < names.texts.size();
}

// A file whose name differs from this one in capitals only; empty: there is none.
std::string in_other_letters(const std::string& name, const std::vector<std::string>& folders) {
  const fs::path wanted = with_slashes(name);
  for (const std::string& folder : folders) {
    const fs::path inside = fs::path(folder) / wanted.parent_path();
    for (const std::string& file : listing_of(inside).files)
      if (file != wanted.filename() && lower_case(file) == lower_case(wanted.filename().string()))
        return (inside / file).string();
  }
  return "";
}

// Where the most of these names are files, and at least the share `least` of them; else nothing.
std::optional<ImageColumn> place_of(const Names& names, const std::vector<std::string>& folders,
                                    const std::vector<std::string>& endings, double least) {
  std::optional<ImageColumn> best;
  size_t most = 0;
  for (const std::string& ending : endings)
    for (const std::string& folder : folders) {
      const auto exists = [&](const std::string& name) { return is_file(folder, name, ending); };
      // Most places hold none of the names: three tell so.
      const size_t count = names.texts.size();
      if (!exists(names.texts[0]) && !exists(names.texts[count / 2]) &&
          !exists(names.texts[count - 1]))
        continue;
      const auto found = static_cast<size_t>(std::ranges::count_if(names.texts, exists));
      if (found <= most || static_cast<double>(found) < least * static_cast<double>(count))
        continue;
      most = found;
      best = ImageColumn{.folder = folder, .ending = ending, .first = names.first, .exists = true};
    }
  return best;
}

// The column whose names are files, with or without their endings, in the table's folder or in one
// beside it; else the first column whose texts end as images do.
std::optional<ImageColumn> find_image_column(const ScannedColumns& t, const CsvFormat& format,
                                             const std::string& path) {
  constexpr size_t kIds = 4;  // names without endings are in one of the first columns
  constexpr double kHalf = 0.5, kNearlyAll = 0.9;  // ids may be those of something else
  const std::vector<std::string> endings = {".jpg",  ".jpeg", ".png",  ".JPG", ".JPEG", ".PNG",
                                            ".tif",  ".tiff", ".webp", ".bmp", ".TIF",  ".TIFF",
                                            ".WEBP", ".BMP",  ".ppm",  ".pgm"};
  const auto named = std::ranges::find_if(t.profiles, names_images);
  std::vector<size_t> columns;
  for (size_t i = 0; i < t.profiles.size(); ++i)
    if (i < kIds || names_images(t.profiles[i])) columns.push_back(i);
  const std::vector<std::string> folders = folders_beside(path);
  for (auto& [column, names] : names_in(path, format, columns, t.rows)) {
    if (!names_images(t.profiles[column]) && repeats(names)) continue;
    std::optional<ImageColumn> place = names_images(t.profiles[column])
                                           ? place_of(names, folders, {""}, kHalf)
                                           : place_of(names, folders, endings, kNearlyAll);
    if (!place) continue;
    place->column = column;
    return place;
  }
  if (named == t.profiles.end()) return {};
  return ImageColumn{.column = static_cast<size_t>(named - t.profiles.begin()),
                     .folder = fs::path(path).parent_path().string(),
                     .first = named->first_word()};
}

// The folder of the images of another table with the same columns; nothing: none holds them.
std::optional<std::string> folder_of_images(const ImageColumn& images, const CsvFormat& format,
                                            const std::string& path) {
  constexpr size_t kRows = 1000;
  constexpr double kHalf = 0.5;
  const std::map<size_t, Names> names = names_in(path, format, {images.column}, kRows);
  if (names.empty()) return {};
  const auto place = place_of(names.begin()->second, folders_beside(path), {images.ending}, kHalf);
  return place ? std::optional(place->folder) : std::nullopt;
}

std::string shown(const std::string& folder) { return folder.empty() ? "." : folder; }

// The files that the column names. A field without a value names none.
std::vector<std::string> files_named(const ImageColumn& images, const CsvFormat& format,
                                     const std::string& path) {
  std::vector<std::string> out;
  scan_csv(path, format, [&](const CsvLine& line) {
    if (line.header || images.column >= line.fields.size()) return true;
    const CsvField& f = line.fields[images.column];
    if (!is_missing_csv(f.text))
      out.push_back(file_of(images.folder, std::string(f.text), images.ending).string());
    return true;
  });
  return out;
}

// The folders of other sets, where they are not the training set's.
void add_folders(DataGuess& g, const ImageColumn& images, const CsvFormat& format) {
  for (const DataGuess::Setting& s : g.settings)
    if (s.key == "test_path") {
      const std::optional<std::string> folder = folder_of_images(images, format, s.value);
      if (folder && *folder != images.folder)
        g.settings.push_back({"test_folder", shown(*folder), "folder of the test images", true});
      break;
    }
  if (g.validation.empty()) return;
  const std::string table = g.validation[0].value;
  const std::optional<std::string> folder = folder_of_images(images, format, table);
  if (!folder) {
    g.notes.push_back(fmt::format(
        "{} is not used as a validation set: its images are in no folder beside it", table));
    g.validation.clear();
  } else if (*folder != fs::path(table).parent_path()) {
    g.validation.push_back({"folder", shown(*folder), "", true});
  }
}

}  // namespace

bool names_images(const ColumnProfile& column) {
  return column.kind() == ColumnProfile::Kind::texts &&
         std::ranges::all_of(column.words(), [](const auto& word) {
           return is_image_ending(fs::path(word.first).extension().string());
         });
}

std::optional<ImageColumn> images_of(const ScannedColumns& t, const CsvFormat& format,
                                     const std::string& path) {
  std::optional<ImageColumn> image = find_image_column(t, format, path);
  if (!image || t.is_category(image->column) ||
      std::ranges::find(t.exclude, image->column) != t.exclude.end())
    return {};
  if (image->exists) return image;
  // Of two columns, the other one is the target.
  const bool only = t.profiles.size() == 2 && t.is_target(image->column);
  const std::vector<std::string> reasons = reasons_left_out(t);
  for (size_t i = 0; i < t.profiles.size() && !only; ++i)
    if (i != image->column && !t.is_target(i) && reasons[i].empty()) return {};
  const ColumnProfile& column = t.profiles[image->column];
  const std::string other = in_other_letters(column.first_text(), folders_beside(path));
  fail(Fault::data,
       "{}: column '{}' holds names of images, such as {}, but there is no such file in {} or its "
       "subfolders; {}",
       path, column.name(), image->first, shown(image->folder),
       other.empty() ? "move the images there, or write a spec whose image_table has the key "
                       "`folder` (dptrain explain image_table)"
                     : fmt::format("{} differs in capitals: use the same ones in the table and in "
                                   "the names of the files",
                                   other));
}

void add_images(DataGuess& g, const ScannedColumns& t, const ImageColumn& images,
                const CsvFormat& format, const std::string& path) {
  g.type = "image_table";
  g.standardizes = false;
  g.settings.insert(g.settings.begin() + 1, {"image", yaml_scalar(t.head.reference(images.column)),
                                             "column with the file names"});
  if (images.folder != fs::path(path).parent_path())
    g.settings.push_back({"folder", shown(images.folder), "folder of the images", true});
  if (!images.ending.empty())
    g.settings.push_back({"ending", yaml_scalar(images.ending), "appended to each name"});
  add_folders(g, images, format);
  g.notes.push_back(
      fmt::format("inputs: images named in column '{}'", t.profiles[images.column].name()));
  std::vector<std::string> others;
  for (size_t i = 0; i < t.profiles.size(); ++i)
    if (i != images.column && !t.is_target(i))
      others.push_back("'" + one_line(t.head.names[i]) + "'");
  if (!others.empty())
    g.notes.push_back(fmt::format(
        "columns not used: {}; to train on them instead of the images, add --exclude {}",
        fmt::join(others, ", "), t.head.reference(images.column)));
  std::vector<std::string> files = files_named(images, format, path);
  const size_t all = files.size();
  std::string missing;
  std::erase_if(files, [&](const std::string& file) {
    std::error_code none;
    const bool gone = !fs::exists(file, none);
    if (gone && missing.empty()) missing = file;
    return gone;
  });
  if (!missing.empty())
    g.notes.push_back(fmt::format("warning: {} of {} do not exist, such as {}; they are left out",
                                  all - files.size(), counted(all, "image"), missing));
  add_image_settings(g, files, !missing.empty());
}

}  // namespace dpt
