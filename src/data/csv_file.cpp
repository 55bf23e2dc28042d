#include "data/csv_file.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/count.h"
#include "base/fail.h"

namespace dpt {
namespace {

void read_classes(Csv& c, const Node& n, Diagnostics& d) {
  c.auto_classes = n.kind == Node::Kind::scalar && !n.quoted && n.text == "auto";
  if (!c.auto_classes) read_into<int64_t>("classes", n, kNotNegative, c.classes, d);
}

Json classes_schema() {
  return {{"type", Json::array({"integer", "string"})}, {"minimum", 0}, {"pattern", "^auto$"}};
}

// table: its names are enough.
CsvColumns columns_of(const Csv& c, const CsvTable& table, const std::string& path) {
  CsvColumns out;
  const auto add = [&](std::vector<size_t>& to, const std::vector<std::string>& names) {
    for (const std::string& name : names) to.push_back(table.column(name, path));
  };
  std::vector<size_t> others;
  add(out.targets, c.targets);
  add(out.inputs, c.inputs);
  add(others, c.exclude);
  others.insert(others.end(), out.targets.begin(), out.targets.end());
  if (c.inputs.empty())
    for (size_t i = 0; i < table.columns(); ++i)
      if (std::ranges::find(others, i) == others.end()) out.inputs.push_back(i);
  if (out.inputs.empty())
    fail(Fault::data, "{} has no columns other than {}", path,
         c.exclude.empty() ? "its targets" : "its targets and those in `exclude`");
  for (const size_t i : out.inputs)
    if (c.has_classes() && std::ranges::find(out.targets, i) != out.targets.end())
      fail(Fault::data,
           "column '{}' of {} is both the target and an input; remove it from 'inputs'",
           table.names[i], path);
  return out;
}

// The names and number of columns of a file, as read_csv() finds them.
CsvTable first_line(const std::string& path, const CsvFormat& format) {
  CsvTable out;
  out.names = read_csv_header(path, format);
  out.header = !out.names.empty();
  if (!out.header)
    scan_csv(path, format, [&](const CsvLine& line) {
      for (size_t i = 0; i < line.fields.size(); ++i) out.names.push_back(std::to_string(i));
      return false;
    });
  return out;
}

// Finds the test set's columns by the names in the training set, in any order.
CsvColumns columns_of_test(const Csv& c, const CsvTable& table) {
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
  CsvColumns out = columns_of(c, train, c.path);
  for (auto* list : {&out.inputs, &out.targets})
    for (size_t& i : *list) i = table.column(train.names[i], c.test_path);
  return out;
}

// Whether the fields of each column hold text that is neither a number nor missing.
std::vector<bool> text_columns(const std::string& path, const CsvFormat& format, size_t columns) {
  std::vector<bool> out(columns);
  scan_csv(path, format, [&](const CsvLine& line) {
    float ignored = 0;
    for (size_t i = 0; i < std::min(columns, line.fields.size()) && !line.header; ++i)
      if (!is_missing_csv(line.fields[i]) && !parse_csv_number(line.fields[i], ignored))
        out[i] = true;
    return true;
  });
  return out;
}

// The input columns that are categories, by their index.
std::vector<size_t> category_columns(const Csv& c, const CsvTable& names, const CsvColumns& columns,
                                     const CsvFormat& format) {
  std::vector<size_t> out;
  if (c.finds_categories()) {
    const std::vector<bool> texts = text_columns(c.path, format, names.columns());
    for (const size_t i : columns.inputs)
      if (texts[i]) out.push_back(i);
    return out;
  }
  for (const std::string& name : c.categories) {
    out.push_back(names.column(name, c.path));
    if (std::ranges::find(columns.inputs, out.back()) == columns.inputs.end())
      fail(
          Fault::data,
          "column '{}' of {} is in `categories`, but it is no input; remove it there, or add it to "
          "the inputs",
          names.names[out.back()], c.path);
  }
  return out;
}

}  // namespace

KeyTable<Csv> Csv::keys() {
  KeyTable<Csv> t;
  t.required_path("path", &Csv::path, "text file, one sample per line")
      .path("test_path", &Csv::test_path, "the same for the test set")
      .optional("targets", &Csv::targets,
                "target columns, by name or by number from 0 (negative: from the end)")
      .optional("inputs", &Csv::inputs,
                "input columns, likewise; by default all columns that are not targets. If they "
                "are given, other columns may hold any text")
      .optional("exclude", &Csv::exclude,
                "columns that are no inputs, likewise; they may hold any text")
      .optional_section("classes",
                        "number of classes in the target column, which holds 0, 1, ...; auto: "
                        "its values are the names of the classes, in sorted order; 0: targets "
                        "are real numbers",
                        read_classes,
                        {.kind = "an integer or auto",
                         .fallback = "0",
                         .type = KeyKind::integer,
                         .schema = classes_schema()})
      .optional("class_names", &Csv::class_names,
                "values of the target column if it holds text, in the order of their classes")
      .optional("categories", &Csv::categories,
                "input columns of text, which become one number per value in the training part: "
                "1 for the line's, 0 for others; auto: all that hold text")
      .choice("missing", &Csv::missing, {"error", "mean", "drop"},
              "what happens to fields without a value (empty, NA, N/A, NaN, nan, null, NULL or "
              "?): an error; the column's mean over the training part, and no category; or the "
              "line is left out")
      .optional("standardize", &Csv::standardize,
                "whether input columns of numbers become (x - mean) / std, by the mean and "
                "standard deviation of the training part")
      .choice("delimiter", &Csv::delimiter, {",", ";", "|", "tab"}, "character between two numbers")
      .choice("header", &Csv::header, {"auto", "yes", "no"},
              "whether the first line names the columns; auto: yes if none of its fields "
              "looks like a number");
  return t;
}

void Csv::check(const Csv& c, const Owner& owner, Diagnostics& d) {
  if (c.targets.empty()) d.error(owner.at("targets"), "'targets' must name a column");
  if (c.has_classes() && c.targets.size() > 1)
    d.error(owner.at("targets"), "'targets' must be one column where 'classes' is given");
  if (c.auto_classes && !c.class_names.empty())
    d.error(owner.at("classes"),
            "'classes: auto' finds the names of the classes; leave out 'classes' or "
            "'class_names'");
  if (c.classes > 0 && !c.class_names.empty() && std::ssize(c.class_names) != c.classes)
    d.error(owner.at("classes"), fmt::format("'class_names' lists {}; leave 'classes' out",
                                             counted(c.class_names.size(), "class", "classes")));
  if (!c.inputs.empty() && !c.exclude.empty())
    d.error(owner.at("exclude"), "'inputs' lists the input columns; leave 'exclude' out");
  std::vector<std::string> sorted = c.class_names;
  std::ranges::sort(sorted);
  if (const auto twice = std::ranges::adjacent_find(sorted); twice != sorted.end())
    d.error(owner.at("class_names"), fmt::format("'class_names' lists '{}' twice", *twice));
}

const std::string& path_of(const Csv& c, Split split) {
  if (split == Split::test && c.test_path.empty()) throw NoTestSplit("csv", "test_path");
  return split == Split::train ? c.path : c.test_path;
}

CsvFormat format_of(const Csv& c) {
  using HeaderLine = CsvFormat::HeaderLine;
  using Missing = CsvFormat::Missing;
  return {.delimiter = c.delimiter == "tab" ? '\t' : c.delimiter[0],
          .header = c.header == "auto"  ? HeaderLine::automatic
                    : c.header == "yes" ? HeaderLine::yes
                                        : HeaderLine::no,
          .missing = c.missing == "mean"   ? Missing::keep
                     : c.missing == "drop" ? Missing::drop
                                           : Missing::refuse,
          .advise_keys = true};
}

CsvFile read_csv_file(const Csv& c, Split split, const Dataset* training) {
  const std::string& path = path_of(c, split);
  CsvFormat format = format_of(c);
  const CsvTable names = first_line(path, format);
  if (names.names.empty()) fail(Fault::data, "{} holds no numbers", path);
  CsvFile out;
  out.columns = split == Split::test ? columns_of_test(c, names) : columns_of(c, names, path);
  // A number finds its column unless a column has that number for its name.
  const auto reference = [&](size_t i) {
    return names.header && names.column(names.names[i], path) == i ? names.names[i]
                                                                   : std::to_string(i);
  };
  for (const size_t i : out.columns.inputs) format.columns.push_back(reference(i));
  for (const size_t i : out.columns.targets) {
    format.columns.push_back(reference(i));
    format.targets.push_back(reference(i));
  }
  if (training != nullptr) {
    const std::vector<ColumnEncoding>& encodings = training->columns.encodings;
    if (!encodings.empty() && encodings.size() != out.columns.inputs.size())
      fail(Fault::data, "{} has {}, but the training set has {}", path,
           counted(out.columns.inputs.size(), "input column"), encodings.size());
    for (size_t i = 0; i < encodings.size(); ++i)
      if (!encodings[i].categories.empty())
        format.text_columns.push_back(reference(out.columns.inputs[i]));
  } else {
    for (const size_t i : category_columns(c, names, out.columns, format))
      format.text_columns.push_back(reference(i));
  }
  out.class_names = c.class_names;
  if (c.auto_classes && training != nullptr) {
    out.class_names = training->class_names;
    format.words_are = "of the training set; correct it";
  }
  const std::string target = reference(out.columns.targets[0]);
  if (!out.class_names.empty()) {
    format.word_column = target;
    format.words = out.class_names;
  } else if (c.auto_classes) {
    format.text_columns.push_back(target);
  }
  out.table = read_csv(path, format);
  return out;
}

}  // namespace dpt
