#include "data/csv_file.h"

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/count.h"
#include "base/fail.h"
#include "base/one_line.h"
#include "data/column_profile.h"

namespace dpt {
namespace {

CsvColumns columns_of(const Csv& c, const CsvHead& head, const std::string& path) {
  CsvColumns out;
  const auto add = [&](std::vector<size_t>& to, const std::vector<std::string>& names) {
    for (const std::string& name : names) to.push_back(head.column(name, path));
  };
  std::vector<size_t> excluded;
  add(out.targets, c.targets);
  add(out.inputs, c.inputs);
  add(excluded, c.exclude);
  std::vector<bool> other(head.columns());
  for (const auto& list : {excluded, out.targets})
    for (const size_t i : list) other[i] = true;
  for (size_t i = 0; i < head.columns() && c.inputs.empty(); ++i)
    if (!other[i]) out.inputs.push_back(i);
  if (out.inputs.empty())
    fail(Fault::data, "{} has no columns other than {}", path,
         c.exclude.empty() ? "its targets" : "its targets and those in `exclude`");
  for (const size_t i : out.inputs)
    if (std::ranges::find(out.targets, i) != out.targets.end())
      fail(Fault::data, "column '{}' of {} is both the target and an input; {}", head.names[i],
           path,
           c.reads_names ? "choose another for `image` or `targets`" : "remove it from 'inputs'");
  return out;
}

// The columns of a file, by those of the training file: found by their names, in any order, if both
// have a header. Targets are named by the spec: `eval` may name others than the run's, which were
// not in the training file.
std::pair<CsvHead, CsvColumns> columns_by_training(const Csv& c, const std::string& path,
                                                   const CsvFormat& format,
                                                   const TableColumns& training) {
  CsvHead trained;
  trained.names = unique_csv_names(training.names);  // those of version 0.1.0 may repeat
  trained.header = training.header;
  CsvMatch match{.names = trained.names, .header = training.header, .used = training.inputs};
  CsvHead head = matching_head(path, format, match);
  if (head.names.empty()) fail(Fault::data, "{} is empty; it needs a line for each sample", path);
  if (head.header && !training.header)
    fail(Fault::data,
         "{} begins with a header, but the training file had none; remove the line, or write "
         "`header: no` if it is a sample",
         path);
  CsvColumns out;
  if (!head.header) {
    if (head.columns() != trained.columns())
      fail(Fault::data, "{} has {}, but the training file had {}{}", path,
           counted(head.columns(), "column"), trained.columns(), head.delimiter_hint());
    for (const std::string& name : c.targets) out.targets.push_back(trained.column(name, path));
    out.inputs = training.inputs;
    return {std::move(head), std::move(out)};
  }
  out.inputs = matching_columns(head, match, path);
  for (const std::string& name : c.targets) {
    const auto is_in = [&](const CsvHead& h) {
      return std::ranges::find(h.names, name) != h.names.end();
    };
    if (is_in(head) && !is_in(trained)) {
      out.targets.push_back(head.column(name, path));
      continue;
    }
    match.used = {trained.column(name, path)};
    out.targets.push_back(matching_columns(head, match, path)[0]);
  }
  return {std::move(head), std::move(out)};
}

// Inputs and targets are two columns at least.
[[noreturn]] void refuse_single_column(const CsvHead& head, char delimiter,
                                       const std::string& path) {
  const char other = head.other_delimiter;
  fail(Fault::data,
       "{} has one column where fields end with {}, but inputs and targets are different columns; "
       "{}",
       path, delimiter_text(delimiter),
       other == '\0' ? "give `delimiter` if the file has another one"
                     : fmt::format("write `delimiter: {}`", delimiter_value(other)));
}

// The columns of a file, and which of them are used. training: null: they are those that the
// settings name.
std::pair<CsvHead, CsvColumns> head_and_columns(const Csv& c, const std::string& path,
                                                const CsvFormat& format,
                                                const TableColumns* training) {
  if (training != nullptr) return columns_by_training(c, path, format, *training);
  CsvHead head = read_csv_head(path, format);
  if (head.names.empty()) fail(Fault::data, "{} is empty; it needs a line for each sample", path);
  if (head.columns() == 1) refuse_single_column(head, format.delimiter, path);
  CsvColumns columns = columns_of(c, head, path);
  return {std::move(head), std::move(columns)};
}

// The input columns that hold texts, by their index; lines that are left out do not count. Throws
// Error{data} for columns of numbers with some fields of text.
std::vector<size_t> columns_of_texts(const Csv& c, const std::string& path, const CsvFormat& format,
                                     const CsvHead& head, const CsvColumns& columns) {
  const std::vector<size_t>& inputs = columns.inputs;
  std::vector<size_t> needed;
  if (format.missing == CsvFormat::Missing::drop) needed = inputs;
  // A name of a class may be spelled like a missing value.
  if ((!needed.empty() || format.drop_targets) && c.class_names.empty())
    needed.insert(needed.end(), columns.targets.begin(), columns.targets.end());
  std::vector<ColumnProfile> profiles;
  for (const size_t i : inputs) profiles.emplace_back(head.names[i], format.decimal);
  size_t first_line = 0;
  scan_csv(path, format, [&](const CsvLine& line) {
    if (first_line == 0) first_line = line.number;
    if (lacks_csv_value(line.fields, needed)) return true;
    for (size_t i = 0; i < inputs.size() && !line.header; ++i)
      if (inputs[i] < line.fields.size()) profiles[i].add(line.fields[inputs[i]]);
    return true;
  });
  const auto header_advice = [&](const ColumnProfile& c) {
    return format.header == CsvFormat::HeaderLine::automatic && c.words().size() == 1 &&
                   c.words().begin()->second.line == first_line
               ? "if this line names the columns, write `header: yes`; otherwise "
               : "";
  };
  std::vector<size_t> out;
  for (size_t i = 0; i < inputs.size(); ++i) {
    using enum ColumnProfile::Kind;
    const ColumnProfile::Kind kind = profiles[i].kind();
    if (kind == broken)
      fail(Fault::data,
           "{}: column '{}' {}; {}{}, {}, list the column in `categories` if they "
           "are texts, or "
           "leave it out with `exclude`",
           path, profiles[i].name(), profiles[i].why_broken(), header_advice(profiles[i]),
           profiles[i].correction(),
           format.decimal == '.' ? "write `decimal: ','` if the file has decimal commas"
                                 : "leave out `decimal` if the file has decimal points");
    if (kind == texts || kind == dates) out.push_back(inputs[i]);
  }
  return out;
}

// The input columns that are categories, by their index.
std::vector<size_t> category_columns(const Csv& c, const std::string& path, const CsvHead& head,
                                     const CsvColumns& columns, const CsvFormat& format) {
  if (c.finds_categories()) return columns_of_texts(c, path, format, head, columns);
  std::vector<size_t> out;
  for (const std::string& name : c.categories) {
    out.push_back(head.column(name, path));
    if (std::ranges::find(columns.inputs, out.back()) == columns.inputs.end())
      fail(
          Fault::data,
          "column '{}' of {} is in `categories`, but it is no input; remove it there, or add it to "
          "the inputs",
          head.names[out.back()], path);
  }
  return out;
}

// The columns of texts of another set than the training set, and what its missing values are.
void read_as_trained(const Csv& c, const TableColumns& training, const CsvColumns& columns,
                     CsvFormat& format) {
  const std::vector<ColumnEncoding>& encodings = training.encodings;
  const bool fills = std::ranges::any_of(encodings, &ColumnEncoding::fills);
  if (fills && c.missing != "drop") format.missing = CsvFormat::Missing::keep;
  if (!fills && c.missing == "mean") format.missing = CsvFormat::Missing::refuse;
  for (size_t i = 0; i < encodings.size(); ++i)
    if (!encodings[i].categories.empty())
      format.text_columns.push_back(
          {.column = columns.inputs[i], .known = encodings[i].categories});
}

// The target column, if it holds the names of classes.
void read_classes_as_texts(const Csv& c, const Dataset* training, const CsvFile& file,
                           CsvFormat& format) {
  const bool finds_classes = c.auto_classes && training == nullptr;
  if (file.class_names.empty() && !finds_classes) return;
  format.text_columns.push_back(
      {.column = file.columns.targets[0],
       .known = file.class_names,
       .refuses_others = finds_classes ? ""
                         : training != nullptr
                             ? "that the model is trained with; correct it, or train with it"
                             : "in `class_names`; add it to the list, or correct it"});
}

}  // namespace

void read_classes(Csv& c, const Node& n, Diagnostics& d) {
  c.auto_classes = n.kind == Node::Kind::scalar && n.text == "auto";
  if (!c.auto_classes) read_into<int64_t>("classes", n, kNotNegative, c.classes, d);
}

Json classes_schema() {
  return {{"type", Json::array({"integer", "string"})}, {"minimum", 0}, {"pattern", "^auto$"}};
}

KeyTable<Csv> Csv::keys() {
  KeyTable<Csv> t;
  t.required_path("path", &Csv::path, "text file, one sample per line")
      .path("test_path", &Csv::test_path, "the same for the test set");
  add_target_keys(t);
  t.optional("inputs", &Csv::inputs,
             "input columns, likewise; by default all columns that are not targets. If they are "
             "given, other columns may hold any text")
      .shared()
      .optional("exclude", &Csv::exclude,
                "columns that are no inputs, likewise; they may hold any text")
      .shared();
  add_class_keys(t);
  t.optional("categories", &Csv::categories,
             "input columns of text, which become one number per value in the training part: 1 for "
             "the line's, 0 for others; auto: all that hold text")
      .shared()
      .choice("missing", &Csv::missing, {"error", "mean", "drop"},
              "what happens to fields without a value (empty, ? or one of pandas' words: NA, N/A, "
              "n/a, NaN, nan, -NaN, -nan, null, NULL, None, <NA>, #N/A, #N/A N/A, #NA, 1.#IND, "
              "-1.#IND, 1.#QNAN, -1.#QNAN): an error; the column's mean over the training part, "
              "and no category; or the "
              "line is left out")
      .optional("standardize", &Csv::standardize,
                "whether input columns of numbers become (x - mean) / std, by the mean and "
                "standard deviation of the training part")
      .shared();
  add_format_keys(t);
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

const std::string& path_of(const Csv& c, Split split, std::string_view dataset) {
  if (split == Split::test && c.test_path.empty()) throw NoTestSplit(dataset, "test_path");
  return split == Split::train ? c.path : c.test_path;
}

CsvFormat format_of(const Csv& c) {
  using HeaderLine = CsvFormat::HeaderLine;
  using Missing = CsvFormat::Missing;
  return {.delimiter = c.delimiter == "tab" ? '\t' : c.delimiter[0],
          .decimal = c.decimal[0],
          .header = c.header == "auto"  ? HeaderLine::automatic
                    : c.header == "yes" ? HeaderLine::yes
                                        : HeaderLine::no,
          .missing = c.missing == "mean"   ? Missing::keep
                     : c.missing == "drop" ? Missing::drop
                                           : Missing::refuse,
          .drop_targets = c.missing_targets == "drop",
          .advise_keys = true};
}

CsvFile read_csv_file(const Csv& c, Split split, const Dataset* training, bool label_words) {
  const std::string& path = path_of(c, split);
  const bool table = training != nullptr && !training->columns.names.empty();
  const bool has_classes = c.has_classes() || (training != nullptr && training->classes > 0);
  CsvFormat format = format_of(c);
  CsvFile out;
  CsvHead head;
  std::tie(head, out.columns) =
      head_and_columns(c, path, format, table ? &training->columns : nullptr);
  if (head.header) format.header = CsvFormat::HeaderLine::yes;  // also if it was found by names
  format.columns = out.columns.inputs;
  format.targets = out.columns.targets;
  format.columns.insert(format.columns.end(), format.targets.begin(), format.targets.end());
  if (table)
    read_as_trained(c, training->columns, out.columns, format);
  else
    for (const size_t i : category_columns(c, path, head, out.columns, format))
      format.text_columns.push_back({.column = i});
  if (c.reads_names)
    for (const size_t i : out.columns.inputs)
      format.text_columns.push_back({.column = i, .are_names = true});
  format.label_words = label_words && !has_classes;
  if (has_classes) out.class_names = training != nullptr ? training->class_names : c.class_names;
  read_classes_as_texts(c, training, out, format);
  if (training != nullptr && training->class_names.empty())
    format.numbered_classes = training->classes;
  out.table = read_csv(path, format);
  out.table.doubt = head.doubt;
  return out;
}

CsvHead matching_head(const std::string& path, const CsvFormat& format, const CsvMatch& match) {
  if (match.header && format.header == CsvFormat::HeaderLine::automatic) {
    CsvFormat named = format;
    named.header = CsvFormat::HeaderLine::yes;
    CsvHead head = read_csv_head(path, named);
    const std::set<std::string_view> names(head.names.begin(), head.names.end());
    if (std::ranges::all_of(match.used, [&](size_t i) { return names.contains(match.names[i]); }))
      return head;
  }
  return read_csv_head(path, format);
}

std::vector<size_t> matching_columns(const CsvHead& head, const CsvMatch& match,
                                     const std::string& path) {
  std::map<std::string_view, size_t> index;
  for (size_t i = 0; i < head.columns(); ++i) index.emplace(head.names[i], i);
  const std::set<std::string_view> trained(match.names.begin(), match.names.end());
  std::vector<size_t> out;
  for (const size_t i : match.used) {
    const std::string& name = match.names[i];
    const auto found = index.find(name);
    if (found == index.end()) head.refuse_name(name, path);
    // The training file has one column of this name, so which one is meant is not known.
    const std::vector<size_t> same = head.columns_written(name);
    if (same.size() > 1 && !trained.contains(name + ".1"))
      fail(
          Fault::data,
          "{} has {} columns '{:.40}': {}, counted from 0, where the training file has one; rename "
          "the other {}, or leave {} out",
          path, same.size(), one_line(name), fmt::join(same, ", "),
          same.size() > 2 ? "columns" : "column", same.size() > 2 ? "them" : "it");
    out.push_back(found->second);
  }
  return out;
}

}  // namespace dpt
