#include "data/image_files.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <utility>

#include <fmt/format.h>
#include <sys/stat.h>

#include "base/count.h"
#include "base/fail.h"
#include "base/lower_case.h"
#include "base/units.h"
#include "data/readers/bytes.h"
#include "data/spread_rows.h"

namespace dpt {
namespace {

namespace fs = std::filesystem;

// A folder and all folders below it, following links. A loop of links would not end, and a few
// links can form a tree of any size.
std::vector<std::string> folders_below(const std::string& folder) {
  std::map<std::pair<dev_t, ino_t>, std::string> seen;
  std::vector<std::string> out = {folder};
  for (size_t i = 0; i < out.size(); ++i) {
    struct stat status {};
    if (::stat(out[i].c_str(), &status) == 0)
      if (const auto [at, is_new] = seen.emplace(std::pair(status.st_dev, status.st_ino), out[i]);
          !is_new)
        fail(Fault::data, "{} and {} are the same folder, through a symbolic link; remove the link",
             at->second, out[i]);
    for (const std::string& below : list_folder(out[i]).folders)
      out.push_back((fs::path(out[i]) / below).string());
  }
  return out;
}

// Adds the files of one folder.
void add_files(const std::string& folder, ImageFiles& out) {
  for (const std::string& file : list_folder(folder).files) {
    const fs::path path = fs::path(folder) / file;
    if (is_image_ending(path.extension().string()))
      out.images.push_back(path.string());
    else if (!is_hidden(file))
      out.others.push_back(path.string());
  }
}

}  // namespace

bool is_hidden(std::string_view name) {
  return name.starts_with(".") || name == "Thumbs.db" || name == "desktop.ini" ||
         name == "__MACOSX";
}

FolderListing list_folder(const std::string& folder) {
  FolderListing out;
  std::error_code error;
  for (auto at = fs::directory_iterator(folder, error); !error && at != fs::directory_iterator();
       at.increment(error)) {
    std::error_code none;  // a broken link is not a folder
    std::string name = at->path().filename().string();
    if (!at->is_directory(none))
      out.files.push_back(std::move(name));
    else if (!is_hidden(name))
      out.folders.push_back(std::move(name));
  }
  if (error) fail(Fault::data, "{} cannot be read: {}", folder, error.message());
  std::ranges::sort(out.folders);
  std::ranges::sort(out.files);
  return out;
}

// torchvision sorts os.walk's triples by the folders' paths.
void add_files_below(const std::string& folder, ImageFiles& out) {
  std::vector<std::string> folders = folders_below(folder);
  std::ranges::sort(folders);
  for (const std::string& one : folders) add_files(one, out);
}

bool has_hidden_folders(const std::string& folder) {
  const auto has_one = [](const std::string& in) {
    std::error_code error, none;
    for (auto at = fs::directory_iterator(in, error); !error && at != fs::directory_iterator();
         at.increment(error))
      if (is_hidden(at->path().filename().string()) && at->is_directory(none)) return true;
    return false;
  };
  return std::ranges::any_of(folders_below(folder), has_one);
}

std::string count_by_ending(std::span<const std::string> files) {
  std::map<std::string, size_t> counts;
  for (const std::string& path : files) ++counts[lower_case(fs::path(path).extension().string())];
  std::string endings;
  for (const auto& [ending, count] : counts)
    endings += fmt::format("{}{} {}", endings.empty() ? "" : ", ", count,
                           ending.empty() ? "without an ending" : ending);
  return endings;
}

std::string left_out_text(std::span<const std::string> others) {
  if (others.empty()) return "";
  return fmt::format(
      "{} left out, as {} not read: {}", counted(others.size(), "file is", "files are"),
      others.size() == 1 ? "its type is" : "their types are", count_by_ending(others));
}

std::string gray16_text(std::span<const std::string> files) {
  constexpr size_t kMostLookedAt = 100;
  constexpr uint64_t kHeader = 4 * kKiB;
  const std::vector<size_t> rows = spread_rows(files.size(), kMostLookedAt);
  size_t deep = 0;
  std::string first;
  for (const size_t i : rows) try {
      const std::string& file = files[i];
      const std::unique_ptr<ByteSource> source = open_bytes(file);
      if (source->compressed()) continue;
      std::vector<std::byte> header(std::min(kHeader, source->most_bytes()));
      source->read(header, "the image");
      if (has_gray16(header) && deep++ == 0) first = file;
    } catch (const Error& e) {
      if (e.fault() != Fault::data) throw;  // the reader of the image reports it
    }
  if (deep == 0) return "";
  return fmt::format(
      "{} of {} {} 16-bit gray values ({}), of which all above 255 become white, as by Pillow's "
      "convert(\"RGB\"); save such images with 8 bits: {}",
      deep, counted(rows.size(), "image"), deep == 1 ? "has" : "have", first, kTo8Bits);
}

std::vector<std::byte> bytes_of_image(const std::string& path) {
  constexpr uint64_t kMostFile = 64 * kMiB;
  const std::unique_ptr<ByteSource> source = open_bytes(path);
  if (source->most_bytes() > kMostFile)
    fail(Fault::data, "{} has {} bytes, and an image may have at most {} MiB; remove it", path,
         source->most_bytes(), kMostFile / kMiB);
  std::vector<std::byte> bytes(source->compressed() ? 0 : source->most_bytes());
  source->read(bytes, "the image");
  return bytes;
}

}  // namespace dpt
