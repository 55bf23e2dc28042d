
#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <numeric>
#include <optional>

#include <fmt/ranges.h>

#include "base/count.h"
#include "base/fail.h"
#include "base/one_line.h"
#include "data/column_encoding.h"
#include "data/csv_file.h"
#include "data/readers/bytes.h"
#include "data/sample_form.h"
#include "data/tables.h"
#include "formats/python_call.h"

namespace dpt::datasets {
namespace {

// What happened to fields.
std::string changes_of(const EncodedInputs& encoded) {
  std::string out;
  if (encoded.filled > 0)
    out += fmt::format("; {} filled", counted(encoded.filled, "missing value"));
  if (encoded.unknown > 0)
    out += fmt::format("; {} of no category that the training set has, first '{:.20}' in '{:.20}'",
                       counted(encoded.unknown, "field"), one_line(encoded.first_unknown[0].text),
                       one_line(encoded.first_unknown[0].column));
  return out;
}

// A warning for each column of numbers that is not standardized and loses digits in float32.
std::vector<std::string> lost_digits(const Csv& c, const CsvFile& file, const std::string& path,
                                     bool has_classes) {
  std::vector<std::string> out;
  const auto look = [&](const std::vector<size_t>& columns, std::string_view remedy) {
    for (const size_t i : columns)
      if (const auto x = number_losing_digits(file.table, i); file.table.texts[i].empty() && x)
        out.push_back(
            fmt::format("column '{:.40}' of {} loses digits in float32: {} becomes {}; {}",
                        one_line(file.table.names[i]), path, *x,
                        static_cast<double>(static_cast<float>(*x)), remedy));
  };
  if (!c.standardize) look(file.columns.inputs, "write `standardize: true`");
  if (!has_classes)
    look(file.columns.targets, "subtract a number from the column, such as its mean");
  return out;
}

// The encodings of a set that is read by itself; empty: all columns are used as they are.
std::vector<ColumnEncoding> own_encodings(const Csv& c, const CsvFile& file, const LoadQuery& query,
                                          const std::string& path) {
  const std::vector<uint32_t> rows = query.trained
                                         ? query.trained(static_cast<int64_t>(file.table.rows))
                                         : std::vector<uint32_t>();
  std::vector<ColumnEncoding> out =
      fit_encodings(file.table, file.columns.inputs, rows,
                    {.fill_missing = c.missing == "mean", .standardize = c.standardize}, path);
  if (!changes_any(out)) out.clear();
  return out;
}

Dataset load(const std::any& settings, const LoadQuery& query) {
  const auto& c = std::any_cast<const Csv&>(settings);
  const std::string& path = path_of(c, query.split);
  std::optional<Dataset> own;
  const Dataset* const training = training_of(settings, path, query, own, load);
  if (training != nullptr) check_class_names(c, *training, path);
  CsvFile file = read_csv_file(c, query.split, training, query.binary_labels);
  const auto& [table, columns, names] = file;
  Dataset d;
  d.columns = {.names = table.names,
               .header = table.header,
               .inputs = columns.inputs,
               .targets = columns.targets};
  if (training != nullptr && !training->columns.names.empty()) {
    d.columns.encodings = training->columns.encodings;
  } else {
    d.columns.encodings = own_encodings(c, file, query, path);
  }
  for (const size_t i : columns.inputs) d.missing.push_back(table.missing[i]);
  set_targets(d, c, file, query, training, path);
  std::vector<std::string> lost;
  if (training == nullptr) lost = lost_digits(c, file, path, d.classes > 0);
  const EncodedInputs encoded = encode(file.table, columns.inputs, d.columns.encodings);
  d.inputs = encoded.table;
  if (!table.doubt.empty()) d.warnings.push_back(table.header_warning());
  if (training != nullptr && encoded.unknown > 0)
    d.warnings.push_back(fmt::format(
        "{}: {} of no category that the model is trained with, first '{:.20}' in '{:.20}': they "
        "count as none",
        path, counted(encoded.unknown, "field"), encoded.first_unknown[0].text,
        encoded.first_unknown[0].column));
  for (const auto* list : {&columns.inputs, &columns.targets})
    for (const size_t i : *list)
      if (!table.thousands[i].empty())
        d.warnings.push_back(path + ": " +
                             thousands_warning(one_line(table.names[i]), table.thousands[i]));
  d.warnings.insert(d.warnings.end(), lost.begin(), lost.end());
  d.description = describe("csv", d, path) + lines_text(table) + changes_of(encoded);
  return d;
}

// "0-59, 61": numbers of columns.
std::string ranges_of(const std::vector<size_t>& columns) {
  std::string out;
  for (size_t i = 0; i < columns.size();) {
    size_t end = i + 1;
    while (end < columns.size() && columns[end] == columns[end - 1] + 1) ++end;
    out += fmt::format("{}{}", i > 0 ? ", " : "", columns[i]);
    if (end > i + 1) out += fmt::format("-{}", columns[end - 1]);
    i = end;
  }
  return out;
}

// "the 65 columns of the training file, or the 61 input columns alone (0-59, 61, counted from 0)".
std::string possible_columns(const TableColumns& columns) {
  return fmt::format("the {} of the training file, or the {} alone ({}, counted from 0)",
                     counted(columns.names.size(), "column"),
                     counted(columns.inputs.size(), "input column"), ranges_of(columns.inputs));
}

// The columns of a file for predictions that hold the inputs. Without a header, the file has either
// the inputs alone or the columns of the training file.
std::vector<size_t> columns_for_inputs(const TableColumns& columns, const CsvHead& head,
                                       const CsvMatch& match, const std::string& path) {
  if (head.header && !columns.header)
    fail(Fault::data,
         "{} begins with a header, but the training file had none; remove the line, and give {}",
         path, possible_columns(columns));
  if (head.header) return matching_columns(head, match, path);
  const size_t inputs = columns.inputs.size();
  if (head.columns() != inputs && head.columns() != columns.names.size())
    fail(Fault::data, "{} has {}, but the model takes {}{}", path,
         counted(head.columns(), "column"), inputs,
         head.other_delimiter != '\0'
             ? head.delimiter_hint()
             : fmt::format("; give {}{}", possible_columns(columns),
                           columns.header ? ", or a header with their names" : ""));
  if (head.columns() != inputs) return columns.inputs;
  std::vector<size_t> all(inputs);
  std::iota(all.begin(), all.end(), size_t{0});
  return all;
}

void note_unknown(const EncodedInputs& encoded, const std::string& path,
                  std::vector<std::string>& notes) {
  for (const EncodedInputs::Unknown& u : encoded.first_unknown)
    notes.push_back(
        fmt::format("{}: row {}: '{:.40}' in column '{:.40}' is none of the categories that the "
                    "model was trained with, so it counts as none of them",
                    path, u.row, one_line(u.text), one_line(u.column)));
  if (const size_t more = encoded.unknown - encoded.first_unknown.size(); more > 0)
    notes.push_back(fmt::format("{}: {} of no category", path, counted(more, "other field")));
}

Table input_columns(const std::any& settings, const TableColumns& columns, const std::string& path,
                    std::vector<std::string>& notes) {
  CsvFormat format = format_of(std::any_cast<const Csv&>(settings));
  format.advise_keys = false;
  format.advise_training = true;
  // Runs of dptrain 0.1.0 may have several columns of one name.
  const std::vector<std::string> names = unique_csv_names(columns.names);
  const CsvMatch match{.names = names, .header = columns.header, .used = columns.inputs};
  const CsvHead head = matching_head(path, format, match);
  if (head.names.empty()) fail(Fault::data, "{} is empty; it needs a line for each sample", path);
  if (head.header) format.header = CsvFormat::HeaderLine::yes;  // also if it was found by names
  format.columns = columns_for_inputs(columns, head, match, path);
  const auto fills = [](const ColumnEncoding& e) { return e.fills; };
  format.missing = std::ranges::any_of(columns.encodings, fills) ? CsvFormat::Missing::keep
                                                                 : CsvFormat::Missing::refuse;
  for (size_t i = 0; i < columns.encodings.size(); ++i)
    if (!columns.encodings[i].categories.empty())
      format.text_columns.push_back(
          {.column = format.columns[i], .known = columns.encodings[i].categories});
  CsvTable table = read_csv(path, format);
  const EncodedInputs encoded = encode(table, format.columns, columns.encodings);
  note_unknown(encoded, path, notes);
  if (encoded.no_category > 0)
    notes.push_back(fmt::format(
        "{}: {} without a value in columns of categories, so {}", path,
        counted(encoded.no_category, "field"),
        encoded.no_category == 1 ? "it counts as none of them" : "they count as none of them"));
  if (!head.doubt.empty())  // names that the training file has are found
    notes.push_back(head.doubt + (columns.header
                                      ? "; if it names the columns, take the training file's names"
                                      : "; if it names the columns, remove it"));
  return encoded.table;
}

// Reads only the columns that are used, since others may hold texts.
std::string torch_of_columns(const Csv& c, const CsvTable& table, const CsvColumns& columns,
                             const std::string& path) {
  std::vector<size_t> used = columns.inputs;
  used.insert(used.end(), columns.targets.begin(), columns.targets.end());
  const std::string words =
      c.class_names.empty()
          ? ""
          : fmt::format(", converters={{{}: lambda word: {}.index(word.strip())}}",
                        columns.targets[0], python(c.class_names));
  return fmt::format(
      "table = np.loadtxt({}, delimiter={}, skiprows={}, ndmin=2, dtype=np.float64,\n"
      "                   usecols=[{}], quotechar='\"', encoding=\"utf-8\"{}).astype(np.float32)\n"
      "x = torch.from_numpy(table[:, :{}])\n"
      "y = torch.from_numpy(table[:, {}:]){}\n",
      python(path), python(std::string(1, format_of(c).delimiter)), table.header ? 1 : 0,
      fmt::join(used, ", "), words, columns.inputs.size(), columns.inputs.size(),
      c.has_classes() ? "[:, 0].long()" : "");
}

// Whether the first line is Excel's `sep=;`, which NumPy does not know.
bool begins_with_separator(const std::string& path) {
  std::array<char, 4> first{};
  std::ifstream(path, std::ios::binary).read(first.data(), first.size());
  return std::string_view(first.data(), first.size()) == "sep=";
}

// Texts, label words, missing values and statistics are left to the arrays that the export then
// writes.
std::string torch(const std::any& settings, const LoadQuery& query) {
  const auto& c = std::any_cast<const Csv&>(settings);
  if (c.depends_on_training() || c.missing != "error" || c.missing_targets != "error" ||
      c.decimal != ".")
    return "";
  const std::string& path = path_of(c, query.split);
  std::optional<Dataset> own;
  const auto [table, columns, names] = read_csv_file(
      c, query.split, training_of(settings, path, query, own, load), query.binary_labels);
  if (table.label_words > 0 || begins_with_separator(path)) return "";
  if (!c.exclude.empty() || !c.inputs.empty() || !c.class_names.empty())
    return torch_of_columns(c, table, columns, path);
  return fmt::format(
      "table = np.loadtxt({}, delimiter={}, skiprows={}, ndmin=2, "
      "dtype=np.float64).astype(np.float32)\n"
      "x = torch.from_numpy(table[:, [{}]])\n"
      "y = torch.from_numpy(table[:, [{}]]){}\n",
      python(path), python(std::string(1, format_of(c).delimiter)), table.header ? 1 : 0,
      fmt::join(columns.inputs, ", "), fmt::join(columns.targets, ", "),
      c.classes > 0 ? "[:, 0].long()" : "");
}

}  // namespace

DatasetType csv() {
  DatasetType t{registry_entry<Csv>("csv", "CSV file of numbers and texts, one sample per line.")};
  t.load = load;
  t.has_test_set = [](const std::any& s) {
    return !std::any_cast<const Csv&>(s).test_path.empty();
  };
  t.input_columns = input_columns;
  t.torch = torch;
  return t;
}

}  // namespace dpt::datasets
