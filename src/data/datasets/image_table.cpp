#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/fail.h"
#include "data/csv_file.h"
#include "data/image_files.h"
#include "data/image_samples.h"
#include "data/tables.h"

namespace dpt::datasets {
namespace {

namespace fs = std::filesystem;

// Images that a text table names, a line for each, with their classes, values or labels in other
// columns. Like pandas.read_csv and a torch Dataset that opens one image after the other.
struct ImageTable : Csv, ImageReading {
  static constexpr Usage kUsage{
      "",
      "dataset: {image_table: {path: train.csv, image: id, folder: train, ending: .jpg,\n    "
      "targets: breed, classes: auto, resize: 64, crop: 64}}\n"
      "dataset: {image_table: {path: labels.csv, image: file, targets: [cat, dog], resize: [32, "
      "32]}}\n"
      "dataset: {image_table: {path: train.csv, test_path: test.csv, folder: train, test_folder: "
      "test,\n    targets: sex, class_names: [f, m], missing_targets: drop, missing: drop,\n    "
      "delimiter: \";\", decimal: \",\", header: yes,\n    exif: true, on_error: skip, resize: 64, "
      "crop: 64}}"};

  std::string image = "0", folder, test_folder, ending;
  static KeyTable<ImageTable> keys() {
    KeyTable<ImageTable> t;
    t.required_path("path", &ImageTable::path, "text file, one image per line")
        .path("test_path", &ImageTable::test_path, "the same for the test set")
        .optional("image", &ImageTable::image,
                  "column with the names of the images, by name or by number from 0")
        .shared()
        .path("folder", &ImageTable::folder,
              "folder that the names are relative to; by default the table's folder")
        .path("test_folder", &ImageTable::test_folder,
              "folder of the test images; by default `folder`")
        .optional("ending", &ImageTable::ending, "appended to each name, such as .jpg")
        .shared();
    add_target_keys(t);
    add_class_keys(t);
    t.choice(
        "missing", &ImageTable::missing, {"error", "drop"},
        "lines whose name or target is empty or a word for a missing value, such as NA: an error, "
        "or they are left out");
    add_format_keys(t);
    return ImageReading::add_keys(t);
  }
  static void check(const ImageTable& t, const Owner& owner, Diagnostics& d) {
    Csv::check(t, owner, d);
    ImageReading::check(t, owner, d);
  }

  // Settings for reading the table: the only input column is that of the names.
  Csv csv() const {
    Csv out = static_cast<const Csv&>(*this);
    out.inputs = {image};
    out.reads_names = true;
    return out;
  }
  fs::path folder_of(Split split) const {
    if (split == Split::test && !test_folder.empty()) return test_folder;
    return folder.empty() ? fs::path(path_of(*this, split, "image_table")).parent_path()
                          : fs::path(folder);
  }
};

// The file of each line of the table. Windows writes a\b.jpg.
std::vector<std::string> files_of(const ImageTable& t, const CsvFile& file, Split split) {
  const CsvTable& table = file.table;
  const size_t column = file.columns.inputs[0];
  const fs::path folder = t.folder_of(split);
  std::vector<std::string> out;
  for (size_t r = 0; r < table.rows; ++r) {
    std::string name =
        table.texts[column][static_cast<size_t>(table.values[r * table.columns() + column])];
    std::ranges::replace(name, '\\', '/');
    out.push_back((folder / (name + t.ending)).string());
  }
  return out;
}

void check_files(const std::vector<std::string>& files, const std::string& path) {
  const auto missing = std::ranges::find_if(files, [](const std::string& file) {
    std::error_code none;
    return !fs::exists(file, none);
  });
  if (missing != files.end())
    fail(Fault::data,
         "{}: image {} of sample {} (counted from 0) does not exist; check `folder` and `ending`, "
         "or write `on_error: skip` to leave out such samples",
         path, *missing, missing - files.begin());
}

// Keeps these lines, which are in ascending order.
void keep_rows(CsvTable& table, const std::vector<size_t>& rows) {
  const auto columns = static_cast<std::ptrdiff_t>(table.columns());
  for (size_t i = 0; i < rows.size(); ++i)
    if (rows[i] != i)
      std::copy_n(table.values.begin() + static_cast<std::ptrdiff_t>(rows[i]) * columns, columns,
                  table.values.begin() + static_cast<std::ptrdiff_t>(i) * columns);
  table.values.resize(rows.size() * table.columns());
  table.rows = rows.size();
}

Dataset load(const std::any& settings, const LoadQuery& query) {
  const auto& t = std::any_cast<const ImageTable&>(settings);
  const Csv csv = t.csv();
  const std::string& path = path_of(t, query.split, "image_table");
  std::optional<Dataset> own;
  const Dataset* const training = training_of(settings, path, query, own, load);
  if (training != nullptr) check_class_names(csv, *training, path);
  CsvFile file = read_csv_file(csv, query.split, training, query.binary_labels);
  std::vector<std::string> files = files_of(t, file, query.split);
  Dataset d;
  if (t.skips())
    keep_rows(file.table, leave_out_damaged(t, files, d.warnings));
  else
    check_files(files, path);
  if (files.empty()) fail(Fault::data, "none of the images that {} names can be read", path);
  d.columns = {.names = file.table.names,
               .header = file.table.header,
               .inputs = file.columns.inputs,
               .targets = file.columns.targets};
  set_targets(d, csv, file, query, training, path);
  if (!file.table.doubt.empty()) d.warnings.push_back(file.table.header_warning());
  if (const std::string deep = gray16_text(files); !deep.empty())
    d.warnings.push_back(fmt::format("{}: {}", path, deep));
  const auto samples = static_cast<int64_t>(files.size());
  const ImageSize image = sample_size(t, files);
  d.inputs = {.desc = {DType::u8, {samples, 3, image.height, image.width}}};
  d.reader = image_files_reader(t, std::move(files), image);
  d.description = describe("image_table", d, path) + lines_text(file.table);
  return d;
}

}  // namespace

DatasetType image_table() {
  DatasetType t{registry_entry<ImageTable>(
      "image_table",
      "Images that a CSV file names, with classes, values or labels in its other "
      "columns, decoded during training.")};
  t.load = load;
  t.has_test_set = [](const std::any& s) {
    return !std::any_cast<const ImageTable&>(s).test_path.empty();
  };
  t.image_reader = [](const std::any& s, std::vector<std::string> files, const Shape& sample) {
    return image_files_reader(std::any_cast<const ImageTable&>(s), std::move(files),
                              {sample[1], sample[2]});
  };
  return t;
}

}  // namespace dpt::datasets
