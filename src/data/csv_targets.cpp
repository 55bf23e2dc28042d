// The targets of a text table.
#include <algorithm>
#include <any>
#include <cmath>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/count.h"
#include "base/fail.h"
#include "base/one_line.h"
#include "data/csv_file.h"
#include "data/readers/bytes.h"
#include "data/sample_form.h"
#include "data/tables.h"

namespace dpt {
namespace {

// Numbers the texts of the target column in sorted order.
Table classes_of_texts(CsvFile& file) {
  const size_t column = file.columns.targets[0];
  const std::vector<std::string>& texts = file.table.texts[column];
  file.class_names = texts;
  sort_csv_texts(file.class_names);
  NewTable out({DType::i32, {static_cast<int64_t>(file.table.rows)}});
  const std::span<int32_t> to = out.as<int32_t>();
  for (size_t r = 0; r < file.table.rows; ++r) {
    const double text = file.table.values[r * file.table.columns() + column];
    const auto at = std::ranges::find(file.class_names, texts[static_cast<size_t>(text)]);
    to[r] = static_cast<int32_t>(at - file.class_names.begin());
  }
  return std::move(out).done();
}

Table classes_from(const CsvFile& file, int64_t classes, const std::string& path,
                   std::optional<int64_t> ignore, ClassesKey key) {
  const CsvTable& table = file.table;
  NewTable out({DType::i32, {static_cast<int64_t>(table.rows)}});
  const std::span<int32_t> to = out.as<int32_t>();
  for (size_t r = 0; r < table.rows; ++r) {
    const double value = table.values[r * table.columns() + file.columns.targets[0]];
    if (std::trunc(value) != value || std::abs(value) > 1e9)
      fail(Fault::data,
           "{}: the target of sample {} (counted from 0) is {}, but classes are whole numbers from "
           "0",
           path, r, value);
    to[r] = static_cast<int32_t>(value);
  }
  return as_classes(std::move(out).done(), classes, path, ignore, 1, key);
}

// Empty if there is no header.
std::string header_of(const CsvTable& table) {
  constexpr size_t kShown = 4;
  if (!table.header) return "";
  std::string out = "; its first line is the header:";
  for (size_t i = 0; i < std::min(table.columns(), kShown); ++i)
    out += fmt::format("{} {:.20}", i > 0 ? "," : "", one_line(table.names[i]));
  return table.columns() > kShown ? out + ", ..." : out;
}

}  // namespace

std::string lines_text(const CsvTable& table) {
  return header_of(table) + (table.dropped > 0 ? fmt::format("; {} with missing values left out",
                                                             counted(table.dropped, "line"))
                                               : "");
}

const Dataset* training_of(const std::any& settings, const std::string& path,
                           const LoadQuery& query, std::optional<Dataset>& own,
                           Dataset (*load)(const std::any&, const LoadQuery&)) {
  if (query.training_set != nullptr || query.split == Split::train) return query.training_set;
  (void)open_bytes(path);  // tells of this file if the training set's is missing, too
  own = load(settings, {.folder = query.folder,
                        .ignore_index = query.ignore_index,
                        .binary_labels = query.binary_labels,
                        .trained = query.trained});
  return &*own;
}

void check_class_names(const Csv& c, const Dataset& training, const std::string& path) {
  if (c.class_names.empty() || training.classes == 0) return;
  if (const auto known = as_stored(training.class_names); known != c.class_names)
    fail(Fault::data,
         "{}: `class_names` lists {}, but the model is trained with {}; leave `class_names` out",
         path, fmt::join(c.class_names, ", "),
         known.empty() ? fmt::format("the numbers 0 to {}", training.classes - 1)
                       : fmt::format("the classes {}", fmt::join(known, ", ")));
}

void set_targets(Dataset& d, const Csv& c, CsvFile& file, const LoadQuery& query,
                 const Dataset* training, const std::string& path) {
  const bool finds_classes = c.auto_classes && training == nullptr;
  if (finds_classes) d.targets = classes_of_texts(file);
  d.class_names = file.class_names;
  d.classes = training != nullptr && training->classes > 0 ? training->classes
              : d.class_names.empty()                      ? c.classes
                                                           : std::ssize(d.class_names);
  if (!finds_classes)
    d.targets = d.classes > 0
                    ? classes_from(file, d.classes, path, query.ignore_index,
                                   training == nullptr ? ClassesKey::automatic : ClassesKey::none)
                    : numbers_of(file.table, file.columns.targets);
}

Table numbers_of(const CsvTable& table, const std::vector<size_t>& columns) {
  NewTable out(
      {DType::f32, {static_cast<int64_t>(table.rows), static_cast<int64_t>(columns.size())}});
  float* to = out.as<float>().data();
  for (size_t r = 0; r < table.rows; ++r)
    for (const size_t i : columns)
      *to++ = static_cast<float>(table.values[r * table.columns() + i]);
  return std::move(out).done();
}

}  // namespace dpt
