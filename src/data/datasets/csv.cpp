#include "data/readers/csv.h"

#include <algorithm>
#include <cmath>

#include "base/count.h"
#include "base/fail.h"
#include "data/tables.h"
#include "formats/python_call.h"

namespace dpt::datasets {
namespace {

// A text table of numbers: inputs f32 [N, columns]. Targets are f32 [N, columns], or one column of
// whole numbers if `classes` is given.
struct Csv {
  static constexpr Usage kUsage{
      "",
      "dataset: {csv: {path: train.csv, test_path: test.csv, targets: label, classes: 3}}\n"
      "dataset: {csv: {path: train.csv, inputs: [0, 1, 2], targets: [-1], delimiter: \";\", "
      "header: no}}\n"
      "dataset: {csv: {path: iris.csv, targets: species, class_names: [setosa, versicolor]}}"};

  std::string path, test_path, delimiter = ",", header = "auto";
  std::vector<std::string> targets{"-1"}, inputs, class_names;
  int64_t classes = 0;
  static KeyTable<Csv> keys() {
    return KeyTable<Csv>()
        .required_path("path", &Csv::path, "text file of numbers, one sample per line")
        .path("test_path", &Csv::test_path, "the same for the test set")
        .optional("targets", &Csv::targets,
                  "target columns, by name or by number from 0 (negative: from the end)")
        .optional("inputs", &Csv::inputs,
                  "input columns, likewise; by default all columns that are not targets. If they "
                  "are given, other columns may hold any text")
        .optional("classes", &Csv::classes,
                  "number of classes in the target column; 0: targets are real numbers",
                  kNotNegative)
        .optional("class_names", &Csv::class_names,
                  "values of the target column if it holds text, in the order of their classes")
        .choice("delimiter", &Csv::delimiter, {",", ";", "|", "tab"},
                "character between two numbers")
        .choice("header", &Csv::header, {"auto", "yes", "no"},
                "whether the first line names the columns; auto: yes if none of its fields "
                "looks like a number");
  }
  static void check(const Csv& c, const Owner& owner, Diagnostics& d) {
    if (c.targets.empty()) d.error(owner.at("targets"), "'targets' must name a column");
    if (c.count() > 0 && c.targets.size() > 1)
      d.error(owner.at("targets"), "'targets' must be one column where 'classes' is given");
    if (c.classes > 0 && !c.class_names.empty() && c.count() != c.classes)
      d.error(owner.at("classes"), fmt::format("'class_names' lists {}; leave 'classes' out",
                                               counted(c.class_names.size(), "class", "classes")));
    std::vector<std::string> sorted = c.class_names;
    std::ranges::sort(sorted);
    if (const auto twice = std::ranges::adjacent_find(sorted); twice != sorted.end())
      d.error(owner.at("class_names"), fmt::format("'class_names' lists '{}' twice", *twice));
  }
  // The number of classes; 0: targets are real numbers.
  int64_t count() const { return class_names.empty() ? classes : std::ssize(class_names); }
};

const std::string& path_of(const Csv& c, Split split) {
  if (split == Split::test && c.test_path.empty()) throw NoTestSplit("csv", "test_path");
  return split == Split::train ? c.path : c.test_path;
}

CsvFormat format_of(const Csv& c) {
  using HeaderLine = CsvFormat::HeaderLine;
  return {.delimiter = c.delimiter == "tab" ? '\t' : c.delimiter[0],
          .header = c.header == "auto"  ? HeaderLine::automatic
                    : c.header == "yes" ? HeaderLine::yes
                                        : HeaderLine::no};
}

// Columns are those of the training file: if both files have headers, the test file's are found by
// their names.
CsvFormat format_of(const Csv& c, Split split) {
  CsvFormat out = format_of(c);
  CsvTable train;
  if (split == Split::test && !read_csv_header(c.test_path, out).empty())
    train.names = read_csv_header(c.path, out);
  const auto named = [&](const std::string& column) {
    return train.names.empty() ? column : train.names[train.column(column, c.path)];
  };
  if (!c.inputs.empty())
    for (const auto* list : {&c.inputs, &c.targets})
      for (const std::string& column : *list) out.columns.push_back(named(column));
  out.words = c.class_names;
  if (!out.words.empty()) out.word_column = named(c.targets[0]);
  return out;
}

struct Columns {
  std::vector<size_t> inputs, targets;
};
Columns columns_of(const Csv& c, const CsvTable& table, const std::string& path) {
  Columns out;
  for (const std::string& name : c.targets) out.targets.push_back(table.column(name, path));
  for (const std::string& name : c.inputs) out.inputs.push_back(table.column(name, path));
  if (c.inputs.empty())
    for (size_t i = 0; i < table.columns(); ++i)
      if (std::ranges::find(out.targets, i) == out.targets.end()) out.inputs.push_back(i);
  if (out.inputs.empty()) fail(Fault::data, "{} has no columns other than its targets", path);
  for (const size_t i : out.inputs)
    if (c.count() > 0 && std::ranges::find(out.targets, i) != out.targets.end())
      fail(Fault::data,
           "column '{}' of {} is both the target and an input; remove it from 'inputs'",
           table.names[i], path);
  return out;
}

// Finds the test set's columns by the names in the training set, in any order.
Columns columns_of_test(const Csv& c, const CsvTable& table) {
  CsvTable train;
  if (table.header) train.names = read_csv_header(c.path, format_of(c));
  if (train.names.empty() || train.names == table.names) return columns_of(c, table, c.test_path);
  std::vector<std::string> sorted = train.names;
  std::ranges::sort(sorted);
  if (const auto twice = std::ranges::adjacent_find(sorted); twice != sorted.end())
    fail(Fault::data,
         "{} has two columns '{}' and {} has other columns, so they cannot be matched by name; "
         "rename one",
         c.path, *twice, c.test_path);
  Columns out = columns_of(c, train, c.path);
  for (auto* list : {&out.inputs, &out.targets})
    for (size_t& i : *list) i = table.column(train.names[i], c.test_path);
  return out;
}

Columns columns_of(const Csv& c, const CsvTable& table, Split split) {
  return split == Split::test ? columns_of_test(c, table) : columns_of(c, table, c.path);
}

Table pick(const CsvTable& table, const std::vector<size_t>& columns) {
  NewTable out(
      {DType::f32, {static_cast<int64_t>(table.rows), static_cast<int64_t>(columns.size())}});
  auto to = out.as<float>().begin();
  for (size_t r = 0; r < table.rows; ++r)
    for (const size_t c : columns) *to++ = table.values[r * table.columns() + c];
  return std::move(out).done();
}

Table classes_from(const Table& values, int64_t classes, const std::string& path,
                   std::optional<int64_t> ignore) {
  NewTable out({DType::i32, {values.size()}});
  const std::span<const float> from = values_of<float>(values);
  for (size_t i = 0; i < from.size(); ++i) {
    if (std::trunc(from[i]) != from[i] || std::abs(from[i]) > 1e9F)
      fail(Fault::data,
           "{}: the target of sample {} (counted from 0) is {}, but classes are whole numbers from "
           "0",
           path, i, from[i]);
    out.as<int32_t>()[i] = static_cast<int32_t>(from[i]);
  }
  return as_classes(std::move(out).done(), classes, path, ignore);
}

// "; its first line is the header: a, b, ..."; empty if there is no header.
std::string header_of(const CsvTable& table) {
  constexpr size_t kShown = 4;
  if (!table.header) return "";
  std::string out = "; its first line is the header:";
  for (size_t i = 0; i < std::min(table.columns(), kShown); ++i)
    out += fmt::format("{} {:.20}", i > 0 ? "," : "", table.names[i]);
  return table.columns() > kShown ? out + ", ..." : out;
}

Dataset load(const std::any& settings, const LoadQuery& query) {
  const auto& c = std::any_cast<const Csv&>(settings);
  const std::string& path = path_of(c, query.split);
  const CsvTable table = read_csv(path, format_of(c, query.split));
  const Columns columns = columns_of(c, table, query.split);
  Dataset d;
  d.inputs = pick(table, columns.inputs);
  d.targets = pick(table, columns.targets);
  d.classes = c.count();
  if (d.classes > 0) d.targets = classes_from(d.targets, d.classes, path, query.ignore_index);
  d.class_names = c.class_names;
  d.columns = {.names = table.names,
               .header = table.header,
               .inputs = columns.inputs,
               .targets = columns.targets};
  d.description = describe("csv", d, path) + header_of(table);
  return d;
}

// The columns of a file for predictions that hold the inputs. Without a header, the file has either
// the inputs alone or the columns of the training file.
std::vector<std::string> input_names(const TableColumns& columns, const CsvFormat& format,
                                     const std::string& path) {
  const bool named = !read_csv_header(path, format).empty();
  if (named && !columns.header)
    fail(Fault::data, "{} begins with a header, but the training file had none; remove the line",
         path);
  std::vector<std::string> out;
  if (named) {
    for (const size_t i : columns.inputs) out.push_back(columns.names[i]);
    return out;
  }
  size_t fields = 0;
  scan_csv(path, format, [&](const CsvLine& line) {
    fields = line.fields.size();
    return false;
  });
  if (fields != columns.inputs.size() && fields != columns.names.size())
    fail(Fault::data,
         "{} has {}, but the model takes {}; give the input columns alone, or a header with their "
         "names",
         path, counted(fields, "column"), columns.inputs.size());
  for (size_t i = 0; i < columns.inputs.size(); ++i)
    out.push_back(std::to_string(fields == columns.inputs.size() ? i : columns.inputs[i]));
  return out;
}

Table input_columns(const std::any& settings, const TableColumns& columns,
                    const std::string& path) {
  CsvFormat format = format_of(std::any_cast<const Csv&>(settings));
  format.columns = input_names(columns, format, path);
  const CsvTable table = read_csv(path, format);
  std::vector<size_t> inputs;
  for (const std::string& name : format.columns) inputs.push_back(table.column(name, path));
  return pick(table, inputs);
}

// Reads only the columns that are used, since others may hold texts.
std::string torch_of_columns(const Csv& c, const CsvTable& table, const Columns& columns,
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
      c.count() > 0 ? "[:, 0].long()" : "");
}

std::string torch(const std::any& settings, const LoadQuery& query) {
  const auto& c = std::any_cast<const Csv&>(settings);
  const std::string& path = path_of(c, query.split);
  const CsvTable table = read_csv(path, format_of(c, query.split));
  const Columns columns = columns_of(c, table, query.split);
  if (!c.inputs.empty() || !c.class_names.empty()) return torch_of_columns(c, table, columns, path);
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
  DatasetType t{registry_entry<Csv>("csv", "CSV file of numbers, one sample per line.")};
  t.load = load;
  t.input_columns = input_columns;
  t.torch = torch;
  return t;
}

}  // namespace dpt::datasets
