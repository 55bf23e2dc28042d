#include "data/guess/csv_images.h"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/one_line.h"
#include "data/image_files.h"
#include "formats/python_call.h"

namespace dpt {
namespace {

namespace fs = std::filesystem;

// "train/img0.jpg" of "train\\img0.jpg", which Windows writes.
std::string with_slashes(std::string text) {
  std::ranges::replace(text, '\\', '/');
  return text;
}

bool is_file(const std::string& folder, std::string_view text, const std::string& ending) {
  constexpr size_t kLongest = 1000;
  if (text.empty() || text.size() > kLongest) return false;
  const fs::path file = fs::path(folder) / (with_slashes(std::string(text)) + ending);
  std::error_code none;
  return is_image_ending(file.extension().string()) && fs::is_regular_file(file, none);
}

// The table's folder, and folders in it.
std::vector<std::string> folders_beside(const fs::path& table) {
  constexpr size_t kMost = 100;
  const fs::path own = table.parent_path();
  const std::string listed = own.empty() ? "." : own.string();
  std::vector<std::string> out = {own.string()};
  std::error_code error;
  if (fs::directory_iterator(listed, error); error) return out;
  for (const std::string& folder : list_folder(listed).folders)
    if (out.size() < kMost) out.push_back((own / folder).string());
  return out;
}

// Finds the image that a field names: its folder, and the ending that the field omits. Returns
// nothing if no such file exists. endings: whether the field may omit the ending.
std::optional<ImageColumn> file_named(const std::vector<std::string>& folders,
                                      std::string_view text, bool endings) {
  constexpr const char* kEndings[] = {"",      ".jpg",  ".jpeg", ".png",  ".JPG", ".JPEG",
                                      ".PNG",  ".tif",  ".tiff", ".webp", ".bmp", ".TIF",
                                      ".TIFF", ".WEBP", ".BMP",  ".ppm",  ".pgm"};
  for (const std::string ending : kEndings) {
    if (!ending.empty() && !endings) break;
    for (const std::string& folder : folders)
      if (is_file(folder, text, ending))
        return ImageColumn{.folder = folder, .ending = ending, .exists = true};
  }
  return {};
}

}  // namespace

bool names_images(const ColumnProfile& column) {
  return column.kind() == ColumnProfile::Kind::texts &&
         std::ranges::all_of(column.words(), [](const auto& word) {
           return is_image_ending(fs::path(word.first).extension().string());
         });
}

std::optional<ImageColumn> find_image_column(const ScannedColumns& t, const CsvFormat& format,
                                             const std::string& path) {
  constexpr size_t kIds = 4;  // names without endings are in one of the first columns
  constexpr int kLines = 3;   // so many lines name files
  const std::vector<std::string> reasons = reasons_left_out(t), folders = folders_beside(path);
  std::optional<ImageColumn> out;
  int lines = 0;
  scan_csv(path, format, [&](const CsvLine& line) {
    if (line.header) return true;
    if (out && !is_file(out->folder, line.fields[out->column].text, out->ending)) {
      out.reset();
      return false;
    }
    for (size_t i = 0; i < line.fields.size() && lines == 0 && !out; ++i) {
      const CsvField& f = line.fields[i];
      const bool id = i < kIds && !reasons[i].empty();
      if (!id && !names_images(t.profiles[i])) continue;
      out = file_named(folders, f.text, id);
      if (!out) continue;
      out->column = i;
      out->first = fmt::format("'{:.20}' on line {}", one_line(f.text), f.line);
    }
    return out.has_value() && ++lines < kLines;
  });
  if (out) return out;
  const auto named = std::ranges::find_if(t.profiles, names_images);
  if (named == t.profiles.end()) return {};
  return ImageColumn{.column = static_cast<size_t>(named - t.profiles.begin()),
                     .folder = fs::path(path).parent_path().string(),
                     .first = named->first_word()};
}

std::vector<std::string> files_named(const ImageColumn& images, const CsvFormat& format,
                                     const std::string& path) {
  std::vector<std::string> out;
  scan_csv(path, format, [&](const CsvLine& line) {
    if (!line.header && images.column < line.fields.size())
      if (const std::string name(line.fields[images.column].text); !name.empty())
        out.push_back((fs::path(images.folder) / (with_slashes(name) + images.ending)).string());
    return true;
  });
  return out;
}

std::string folder_of_images(const ImageColumn& images, const CsvFormat& format,
                             const std::string& path) {
  std::optional<ImageColumn> found;
  scan_csv(path, format, [&](const CsvLine& line) {
    if (line.header) return true;
    if (images.column < line.fields.size())
      found = file_named(folders_beside(path),
                         std::string(line.fields[images.column].text) + images.ending, false);
    return false;
  });
  return found ? found->folder : "";
}

}  // namespace dpt
