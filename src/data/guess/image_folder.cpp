// To which size the images of a folder are brought.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>

#include <fmt/format.h>

#include "base/count.h"
#include "base/fail.h"
#include "data/guess/guess.h"
#include "data/guess/image_layout.h"
#include "data/image_files.h"
#include "data/readers/image.h"
#include "data/readers/orientation.h"
#include "data/spread_rows.h"

namespace dpt {
namespace {

namespace fs = std::filesystem;

struct Sizes {
  int64_t height = 0, width = 0;  // of the first image
  bool same = true;               // all have this size
  int64_t shorter = 0;            // the median of the shorter sides
  bool gray = true;
  size_t turned = 0;    // images whose EXIF data asks for it
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

// "all images", or how many of them were looked at.
std::string part_text(size_t looked_at, size_t all) {
  return looked_at == all ? "all images" : fmt::format("{} of {} images", looked_at, all);
}

// Photographs are made small, so that a first training takes minutes.
void add_sizes(DataGuess& g, const Sizes& s, const std::string& of_images) {
  constexpr int64_t kSmall = 96;
  if (s.same && s.height <= kSmall && s.width <= kSmall) {
    g.settings.push_back(
        {"resize", fmt::format("[{}, {}]", s.height, s.width), "height and width of " + of_images});
    return;
  }
  int64_t side = 128;
  while (side > 16 && side > s.shorter) side /= 2;
  g.settings.push_back(
      {"resize", std::to_string(side), "length of the shorter side; larger is slower"});
  g.settings.push_back({"crop", std::to_string(side), "the square in the center is used"});
}

// A sentence about classes whose images lie in folders only, which may be the classes or splits;
// empty: some class has images of its own.
std::string nested_text(const ImageLayout& layout) {
  fs::path first;
  for (const std::string& name : layout.classes) {
    const FolderListing in = list_folder((fs::path(layout.train) / name).string());
    if (in.folders.empty() || std::ranges::any_of(in.files, [](const std::string& file) {
          return is_image_ending(fs::path(file).extension().string());
        }))
      return "";
    if (first.empty()) first = fs::path(layout.train) / name / in.folders[0];
  }
  return fmt::format(
      "warning: all images lie in subfolders of the class folders, such as {}; if the subfolders "
      "are "
      "the classes, run init on the folder above them, {}; if they are splits of the data, arrange "
      "the images as train/CLASS and test/CLASS",
      first.string(), first.parent_path().string());
}

}  // namespace

void add_image_settings(DataGuess& g, const std::vector<std::string>& all, bool skips) {
  constexpr size_t kDecoded = 200;
  std::vector<fs::path> files;
  for (const size_t i : spread_rows(all.size(), kDecoded)) files.emplace_back(all[i]);
  const Sizes sizes = sizes_of(files);
  g.notes.push_back(sizes.same
                        ? fmt::format("size: {} x {} pixels{}", sizes.width, sizes.height,
                                      sizes.gray ? ", gray (read as 3 equal channels)" : "")
                        : fmt::format("sizes differ; the shorter side has {} pixels (median of {})",
                                      sizes.shorter, counted(files.size(), "image")));
  if (sizes.turned > 0)
    g.notes.push_back(fmt::format(
        "EXIF data says that {} of {} {} to be turned; as torchvision does, dptrain reads images "
        "as "
        "stored unless you add `exif: true` to {}",
        sizes.turned, counted(files.size(), "image"), sizes.turned == 1 ? "has" : "have", g.type));
  if (const std::string deep = gray16_text(all); !deep.empty()) g.notes.push_back(deep);
  add_sizes(g, sizes, part_text(files.size(), all.size()));
  if (!sizes.damaged.empty()) g.notes.push_back(sizes.damaged);
  if (skips || !sizes.damaged.empty())
    g.settings.push_back({"on_error", "skip", "images that cannot be read are left out"});
}

DataGuess guess_images(const std::string& folder) {
  const fs::path path = fs::path(folder).lexically_normal();
  const ImageLayout layout = image_layout(path.string());
  DataGuess g{.type = "image_folder"};
  g.name = (path.has_filename() ? path : path.parent_path()).filename().string();
  g.settings.push_back({"path", layout.train, "one folder of images per class", true});
  if (!layout.test.empty())
    g.settings.push_back({"test_path", layout.test, "images for the evaluation", true});
  if (!layout.validation.empty()) g.validation = {{"path", layout.validation, "", true}};
  g.class_names = layout.classes;
  ImageFiles all;
  for (const std::string& name : layout.classes)
    add_files_below((fs::path(layout.train) / name).string(), all);
  g.notes.push_back(fmt::format(
      "{}: images in {}", layout.train,
      counted(g.class_names.size(), "folder, one per class", "folders, one per class")));
  add_image_settings(g, all.images);
  g.notes.insert(g.notes.end(), layout.notes.begin(), layout.notes.end());
  if (const std::string deep = nested_text(layout); !deep.empty()) g.notes.push_back(deep);
  if (!all.others.empty()) g.notes.push_back(left_out_text(all.others));
  return g;
}

}  // namespace dpt
