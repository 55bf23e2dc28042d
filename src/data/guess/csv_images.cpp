#include "data/guess/csv_images.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "data/image_files.h"
#include "formats/python_call.h"

namespace dpt {
namespace {

namespace fs = std::filesystem;

// The folder that a table's file names are relative to: the table's own, or one beside it.
fs::path folder_of(const fs::path& table, const std::string& image) {
  std::error_code none;
  const fs::path own = table.parent_path();
  const std::string listed = own.empty() ? "." : own.string();
  if (fs::exists(own / image, none)) return own;
  for (const std::string& folder : list_folder(listed).folders)
    if (fs::exists(own / folder / image, none)) return own / folder;
  return own;
}

}  // namespace

bool names_images(const ColumnProfile& column) {
  return column.kind() == ColumnProfile::Kind::texts &&
         std::ranges::all_of(column.words(), [](const auto& word) {
           return is_image_ending(fs::path(word.first).extension().string());
         });
}

std::string image_table_remedy(const ImageTable& table, const std::string& image) {
  const fs::path path = table.path;
  const std::string out = (path.parent_path() / (path.stem().string() + "_images")).string();
  const std::string rows =
      fmt::format("[r for r in csv.reader(open({}){}) if r]{}", python(table.path),
                  table.delimiter == ',' ? "" : fmt::format(", delimiter=\"{}\"", table.delimiter),
                  table.header ? "[1:]" : "");
  const std::string file =
      fmt::format("os.path.join({}, r[{}])", python(folder_of(path, image).string()), table.images);
  if (table.classes)
    return fmt::format(
        "dptrain reads classes from folders: copy the images there by python3 -c 'import csv, os, "
        "shutil; [shutil.copy({}, os.makedirs(d, exist_ok=True) or d) for r in {} for d in "
        "[os.path.join({}, r[{}])]]', and then: dptrain init {}",
        file, rows, python(out), table.targets[0], out);
  return fmt::format(
      "for values dptrain reads images from arrays: write these by mkdir {0} && python3 -c 'import "
      "csv, os, numpy as np; from PIL import Image; rows = {1}; np.save({2}, "
      "[np.asarray(Image.open({3}).convert(\"RGB\").resize((64, 64))).transpose(2, 0, 1) for r in "
      "rows]); np.save({4}, np.array([[r[i] for i in [{5}]] for r in rows], \"float32\"))', and "
      "then: dptrain init {0}",
      out, rows, python((fs::path(out) / "x.npy").string()), file,
      python((fs::path(out) / "y.npy").string()), fmt::join(table.targets, ", "));
}

}  // namespace dpt
