// Where the images of a folder are, and to which size they are brought.
#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/count.h"
#include "base/fail.h"
#include "data/guess/guess.h"
#include "data/image_files.h"
#include "data/readers/image.h"
#include "data/readers/orientation.h"

namespace dpt {
namespace {

namespace fs = std::filesystem;

constexpr std::initializer_list<const char*> kValidationNames = {"val", "valid", "validation"};

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
    return !fs::is_directory(p, none);
  });
  return out;
}

std::vector<fs::path> images(const fs::path& folder) {
  std::vector<fs::path> out = entries(folder);
  std::erase_if(out, [](const fs::path& p) { return !is_image_ending(p.extension().string()); });
  return out;
}

// Whether there are images in the folder or below it.
bool has_images(const fs::path& folder) {
  std::error_code error;
  const auto options = fs::directory_options::skip_permission_denied;
  for (auto at = fs::recursive_directory_iterator(folder, options, error);
       !error && at != fs::recursive_directory_iterator(); at.increment(error))
    if (is_image_ending(at->path().extension().string())) return true;
  return false;
}

std::string lower_name(const fs::path& path) {
  std::string out = path.filename().string();
  std::ranges::transform(out, out.begin(), [](unsigned char c) { return std::tolower(c); });
  return out;
}

bool is_one_of(const fs::path& path, std::initializer_list<const char*> names) {
  const std::string name = lower_name(path);
  return std::ranges::any_of(names, [&](std::string_view known) { return known == name; });
}

// The subfolders with images.
std::vector<fs::path> image_folders(const fs::path& folder) {
  std::vector<fs::path> out = folders(folder);
  std::erase_if(out, [](const fs::path& f) { return !has_images(f); });
  return out;
}

// Whether it is a set with a folder per class. Folders of splits hold such sets.
bool has_classes(const fs::path& folder) {
  const std::vector<fs::path> all = image_folders(folder);
  const auto direct = [](const fs::path& f) { return !images(f).empty(); };
  const auto is_split = [](const fs::path& f) {
    return is_one_of(f, {"train", "training", "test", "testing", "val", "valid", "validation"});
  };
  return std::ranges::any_of(all, direct) || (!all.empty() && std::ranges::none_of(all, is_split));
}

// At most `most` of these files, evenly spread.
std::vector<fs::path> some_of(const std::vector<std::string>& all, size_t most) {
  std::vector<fs::path> out;
  const size_t count = std::min(most, all.size());
  for (size_t i = 0; i < count; ++i) out.emplace_back(all[i * all.size() / count]);
  return out;
}

// Files of labels beside folders of images.
std::vector<std::string> tables(const fs::path& folder) {
  std::vector<std::string> out;
  for (const fs::path& file : entries(folder))
    if (const std::string ending = lower_name(file.extension());
        ending == ".csv" || ending == ".tsv" || ending == ".json")
      out.push_back(file.filename().string());
  return out;
}

// Throws if the subfolders with images are no classes: a single one, or images and their masks.
void check_classes(const fs::path& folder, const fs::path& parent) {
  const std::vector<fs::path> all = image_folders(folder);
  const auto is_mask = [](const fs::path& f) {
    return is_one_of(f, {"mask", "masks", "label", "labels", "annotations", "segmentation",
                         "segmentations", "targets", "ground_truth", "gt"});
  };
  const auto is_input = [](const fs::path& f) {
    return is_one_of(f, {"image", "images", "img", "imgs", "input", "inputs", "jpegimages"});
  };
  if (all.size() == 2 && std::ranges::any_of(all, is_mask) && std::ranges::any_of(all, is_input))
    fail(Fault::data,
         "{0} holds {1}/ and {2}/, which look like images and their masks, not like classes; for "
         "one class per pixel save them as arrays in a folder: x.npy, uint8 [N, channels, height, "
         "width], and y.npy, uint8 [N, height, width], the class numbers from 0; then `dptrain "
         "init` that folder",
         folder.string(), all[0].filename().string(), all[1].filename().string());
  if (all.size() != 1 || (folders(folder).size() > 1 && !is_input(all[0]))) return;
  std::vector<std::string> labels = tables(folder);
  if (labels.empty()) labels = tables(parent);
  fail(Fault::data, "{} holds images in one subfolder only, {}/{}; {}", folder.string(),
       all[0].filename().string(),
       labels.empty() ? "" : fmt::format(", and {}, which is not read", fmt::join(labels, ", ")),
       has_classes(all[0])
           ? fmt::format("if its subfolders are the classes, write: dptrain init {}",
                         all[0].string())
           : fmt::format("each class needs a subfolder of its own: move the images to {}",
                         (folder / "CLASS" / "1.jpg").string()));
}

struct Sizes {
  int64_t height = 0, width = 0;  // of the first image
  bool same = true;               // all have this size
  int64_t shorter = 0;            // the median of the shorter sides
  bool gray = true;
  size_t turned = 0;    // images whose EXIF data asks for it
  size_t gray16 = 0;    // see has_gray16()
  std::string damaged;  // why one of them cannot be read; empty: all can
};

Sizes sizes_of(const std::vector<fs::path>& files) {
  Sizes out;
  std::vector<int64_t> shorter;
  for (const fs::path& file : files) {
    std::vector<std::byte> bytes;
    Image image;
    try {
      bytes = bytes_of_image(file.string());
      image = decode_image(bytes, file.string());
    } catch (const Error& e) {
      out.damaged = e.what();
      continue;
    }
    if (exif_orientation(bytes) != 1) ++out.turned;
    if (has_gray16(bytes)) ++out.gray16;
    if (shorter.empty()) out.height = image.height, out.width = image.width;
    out.same = out.same && image.height == out.height && image.width == out.width;
    shorter.push_back(std::min(image.height, image.width));
    for (size_t i = 0; out.gray && i + 2 < image.pixels.size(); i += 3)
      out.gray = image.pixels[i] == image.pixels[i + 1] && image.pixels[i] == image.pixels[i + 2];
  }
  if (shorter.empty()) fail(Fault::data, "{}", out.damaged);
  std::ranges::sort(shorter);
  out.shorter = shorter[shorter.size() / 2];
  return out;
}

// Photographs are made small, so that a first training takes minutes.
void add_sizes(DataGuess& g, const Sizes& s) {
  constexpr int64_t kSmall = 96;
  if (s.same && s.height <= kSmall && s.width <= kSmall) {
    g.settings.push_back(
        {"resize", fmt::format("[{}, {}]", s.height, s.width), "height and width of all images"});
    return;
  }
  int64_t side = 128;
  while (side > 16 && side > s.shorter) side /= 2;
  g.settings.push_back(
      {"resize", std::to_string(side), "length of the shorter side; larger is slower"});
  g.settings.push_back({"crop", std::to_string(side), "the square in the center is used"});
}

}  // namespace

bool holds_image_folders(const std::string& folder) {
  const fs::path path(folder);
  return has_classes(path / "train") || has_classes(path);
}

size_t loose_images(const std::string& folder) { return images(folder).size(); }

std::string unread_files(const std::string& folder) {
  constexpr std::array<std::string_view, 11> kEndings = {
      ".gif", ".heic", ".heif", ".avif", ".svg", ".jp2", ".npz", ".mat", ".h5", ".parquet", ".pkl"};
  std::vector<std::string> found;
  std::vector<fs::path> all = folders(folder);
  all.emplace_back(folder);
  for (const fs::path& one : all)
    for (const fs::path& file : entries(one)) {
      std::string ending = file.extension().string();
      std::ranges::transform(ending, ending.begin(),
                             [](unsigned char c) { return std::tolower(c); });
      if (std::ranges::find(kEndings, ending) != kEndings.end()) found.push_back(file.string());
    }
  return count_by_ending(found);
}

DataGuess guess_images(const std::string& folder) {
  constexpr size_t kDecoded = 100;
  const fs::path path = fs::path(folder).lexically_normal();
  DataGuess g{.type = "image_folder"};
  const bool split = has_classes(path / "train");
  const fs::path train = split ? path / "train" : path;
  g.name = (path.has_filename() ? path : path.parent_path()).filename().string();
  g.settings.push_back({"path", train.string(), "one folder of images per class", true});
  if (split && has_classes(path / "test"))
    g.settings.push_back(
        {"test_path", (path / "test").string(), "images for the evaluation", true});
  for (const char* name : kValidationNames)
    if (split && g.validation.empty() && has_classes(path / name))
      g.validation = (path / name).string();
  for (const fs::path& one : folders(train)) g.class_names.push_back(one.filename().string());
  check_classes(train, path);
  ImageFiles all;
  for (const fs::path& one : folders(train)) add_files_below(one.string(), all);
  const std::vector<fs::path> files = some_of(all.images, kDecoded);
  const Sizes sizes = sizes_of(files);
  g.notes.push_back(fmt::format(
      "{}: images in {}", train.string(),
      counted(g.class_names.size(), "folder, one per class", "folders, one per class")));
  g.notes.push_back(sizes.same
                        ? fmt::format("size: {} x {} pixels{}", sizes.width, sizes.height,
                                      sizes.gray ? ", gray (read as 3 equal channels)" : "")
                        : fmt::format("sizes differ; the shorter side has {} pixels (median of {})",
                                      sizes.shorter, counted(files.size(), "image")));
  if (!all.others.empty()) g.notes.push_back(left_out_text(all.others));
  if (sizes.turned > 0)
    g.notes.push_back(fmt::format(
        "{} of {} {} to be turned, as EXIF data says; they are read as stored, as by torchvision's "
        "ImageFolder, unless `exif: true` is added to image_folder",
        sizes.turned, counted(files.size(), "image"), sizes.turned == 1 ? "is" : "are"));
  if (sizes.gray16 > 0)
    g.notes.push_back(fmt::format(
        "{} of {} {} 16-bit gray values, of which all above 255 become white, as by Pillow's "
        "convert(\"RGB\"); save them with 8 bits first",
        sizes.gray16, counted(files.size(), "image"), sizes.gray16 == 1 ? "has" : "have"));
  add_sizes(g, sizes);
  if (!sizes.damaged.empty()) {
    g.notes.push_back(sizes.damaged);
    g.settings.push_back({"on_error", "skip", "images that cannot be read are left out"});
  }
  return g;
}

}  // namespace dpt
