// The settings of a text table by its columns.
#include "data/readers/csv.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/count.h"
#include "base/fail.h"
#include "base/lower_case.h"
#include "base/one_line.h"
#include "base/utf8.h"
#include "data/column_profile.h"
#include "data/guess/csv_columns.h"
#include "data/guess/csv_format.h"
#include "data/guess/csv_images.h"
#include "data/guess/csv_sets.h"
#include "data/guess/guess.h"

namespace dpt {
namespace {

namespace fs = std::filesystem;
using Kind = ColumnProfile::Kind;

// Whether the classes are 0, 1, 2, ... written as such, which need no names.
bool counts_from_zero(const std::vector<std::string>& classes) {
  for (size_t i = 0; i < classes.size(); ++i)
    if (classes[i] != std::to_string(i)) return false;
  return true;
}

enum class Task { classification, regression };

// Which options leave out the lines without a target, and how many lines each of them does.
std::string advice_on_missing(const ScannedColumns& t, const std::string& path,
                              const CsvFormat& format) {
  const LackingLines lines = count_lacking(t, path, format);
  if (lines.all == lines.targets) return "leave such lines out with --missing-targets drop";
  return fmt::format(
      "leave such lines out with --missing-targets drop ({} of {}), or all that lack a value with "
      "--missing drop ({})",
      lines.targets, counted(t.rows, "line"), lines.all);
}

// Throws Error{data} if the column cannot be predicted.
void check_target(const ScannedColumns& t, const ColumnProfile& target, const std::string& path,
                  const CsvFormat& format) {
  const auto other = "or choose another column with --target";
  if (target.kind() == Kind::empty)
    fail(Fault::data,
         "{}: the target column '{}' has no value in any line; choose another column "
         "with --target",
         path, target.name());
  if (target.missing() > 0)
    fail(Fault::data, "{}:{}:{}: the target column '{}' {} on this line{}; {}{}, {}", path,
         target.missing_line(), target.missing_column(), target.name(),
         target.missing_text().empty()
             ? "is empty"
             : fmt::format("has '{}', which stands for a missing value,", target.missing_text()),
         target.missing() > 1 ? " and on " + counted(target.missing() - 1, "other") : "",
         advice_on_missing(t, path, format),
         target.missing_text().empty() ? "" : ", treat this text as a class with --missing class",
         other);
  if (target.kind() == Kind::broken)
    fail(Fault::data, "{}: the target column '{}' {}; {}, {}", path, target.name(),
         target.why_broken(), t.advice(target, target.correction()), other);
  if (target.kind() == Kind::dates)
    fail(Fault::data,
         "{}: the target column '{}' holds dates, such as {}; write them as numbers, {}", path,
         target.name(), target.first_word(), other);
}

constexpr size_t kFewNumbers = 20;  // so many different whole numbers may be classes

// Few different whole numbers or texts are classes.
Task task_of(const ScannedColumns& t, const std::string& path) {
  const ColumnProfile& target = t.profiles[t.targets[0]];
  const size_t given = target.rows() - target.missing(), different = t.target_texts.size();
  if (target.kind() == Kind::numbers)
    return target.whole() && different <= kFewNumbers && (different == 2 || different * 5 <= given)
               ? Task::classification
               : Task::regression;
  if (different > kMostCsvClasses || different * 2 > given)
    fail(Fault::data,
         "{}: the target column '{}' has {} different values of text in {} lines, so they cannot "
         "be classes; choose another column with --target",
         path, target.name(),
         different <= kMostCsvClasses ? fmt::format("{}", different)
                                      : fmt::format("more than {}", kMostCsvClasses),
         given);
  return Task::classification;
}

std::string yaml_list(const std::vector<std::string>& texts) {
  std::string out;
  for (const std::string& t : texts) out += (out.empty() ? "" : ", ") + yaml_scalar(t);
  return "[" + out + "]";
}

std::string names_of(const CsvHead& head, std::span<const size_t> columns) {
  std::vector<std::string> out;
  for (const size_t i : columns) out.push_back("'" + one_line(head.names[i]) + "'");
  return fmt::format("{}", fmt::join(out, ", "));
}

// Whether a column's texts are words for 1 and 0: True and False, yes and no.
bool has_label_words(const ColumnProfile& column) {
  return column.kind() == Kind::texts && column.whole() &&
         std::ranges::all_of(column.words(), [](const auto& word) {
           return parse_csv_label(word.first).has_value();
         });
}

void add_several_targets(DataGuess& g, const ScannedColumns& t, const std::string& path,
                         const CsvFormat& format) {
  std::vector<std::string> references;
  // Words for labels are read only if all targets are labels.
  const bool labels = std::ranges::all_of(t.targets, [&](size_t i) {
    const ColumnProfile& c = t.profiles[i];
    return has_label_words(c) || (c.kind() == Kind::numbers && c.whole() && c.different() <= 2);
  });
  for (const size_t i : t.targets) {
    check_target(t, t.profiles[i], path, format);
    if (t.profiles[i].kind() != Kind::numbers && !labels)
      fail(Fault::data,
           "{}: the target column '{}' holds texts, such as {}; several targets must be columns of "
           "numbers, and of 0 and 1, True and False, or yes and no for labels",
           path, t.profiles[i].name(), t.profiles[i].first_word());
    references.push_back(t.head.reference(i));
  }
  g.settings.push_back({"targets", yaml_list(references), "the columns to predict"});
  g.notes.push_back(fmt::format("targets: columns {}", names_of(t.head, t.targets)));
}

// Tables of images as pixels often have the class in front.
void note_first_target(DataGuess& g, const ScannedColumns& t, const GuessQuery& query) {
  const std::string name = lower_case(t.head.names[0]);
  if (query.target.empty() && (name == "label" || name == "target" || name == "class"))
    g.notes.push_back(
        fmt::format("the target is the last column; if it is the first, use --target {0}",
                    t.head.reference(0)));
}

void add_target(DataGuess& g, const ScannedColumns& t, const std::string& path,
                const CsvFormat& format) {
  if (t.targets.size() > 1) return add_several_targets(g, t, path, format);
  const ColumnProfile& column = t.profiles[t.targets[0]];
  check_target(t, column, path, format);
  g.settings.push_back(
      {"targets", yaml_scalar(t.head.reference(t.targets[0])), "the column to predict"});
  if (task_of(t, path) == Task::regression) {
    g.notes.push_back(fmt::format("target: column '{}', real numbers: regression", column.name()));
    return;
  }
  std::vector<std::string> classes = t.target_texts.texts();
  sort_csv_texts(classes);
  if (classes.size() < 2)
    fail(Fault::data,
         "{}: the target column '{}' has the same value in all lines, so there is nothing to "
         "learn; choose another column with --target",
         path, column.name());
  g.notes.push_back(fmt::format("target: column '{}', {} classes: classification", column.name(),
                                classes.size()));
  if (counts_from_zero(classes)) {
    g.settings.push_back(
        {"classes", std::to_string(classes.size()), "classes 0, 1, ...; 0: values"});
  } else if (std::ranges::any_of(classes, [](const std::string& text) {
               return find_control(text, "\n\t") != text.npos;  // not possible in YAML
             })) {
    g.settings.push_back({"classes", "auto", "classes have the texts of the column as names"});
  } else {
    g.class_names = classes;
    g.settings.push_back({"class_names", yaml_list(classes), "text of classes 0, 1, ..."});
  }
}

// What inputs without a value become: the column's mean if a file has such, or by the query.
void add_missing(DataGuess& g, const ScannedColumns& t, const GuessQuery& query,
                 const CsvFormat& format, size_t missing) {
  if (missing > 0) g.notes.push_back(fmt::format("{} missing", counted(missing, "value")));
  if (query.drops_missing) {
    g.settings.push_back({"missing", "drop", "lines with an empty field are left out"});
    return;
  }
  const std::string other =
      missing > 0 || query.fills_missing ? "" : gaps_beside(query.path, format, t);
  if (missing == 0 && !query.fills_missing && other.empty()) return;
  g.settings.push_back({"missing", "mean", "empty fields count as the column's mean"});
  if (!other.empty())
    g.notes.push_back(
        fmt::format("{} has fields without a value, which count as the column's mean", other));
}

void add_inputs(DataGuess& g, const ScannedColumns& t, const GuessQuery& query,
                const CsvFormat& format) {
  const std::string& path = query.path;
  std::vector<std::string> excluded, categories, left_out;
  size_t numbers = 0, missing = 0;
  const std::vector<std::string> reasons = reasons_left_out(t);
  for (size_t i = 0; i < t.profiles.size(); ++i) {
    if (t.is_target(i)) continue;
    const ColumnProfile& c = t.profiles[i];
    if (!reasons[i].empty()) {
      excluded.push_back(t.head.reference(i));
      left_out.push_back(fmt::format("column '{}' is left out: {}", c.name(), reasons[i]));
      g.notes.push_back(left_out.back());
      continue;
    }
    check_input(t, i, path);
    missing += c.missing();
    if (c.kind() == Kind::numbers && !t.is_category(i))
      ++numbers;
    else
      categories.push_back(t.head.reference(i));
  }
  if (numbers + categories.size() == 0)
    fail(Fault::data, "{} has no column to predict from other than the target {}; {}", path,
         names_of(t.head, t.targets), fmt::join(left_out, "; "));
  if (!excluded.empty())
    g.settings.push_back({"exclude", yaml_list(excluded), "columns that are no inputs"});
  if (!categories.empty())
    g.settings.push_back({"categories", yaml_list(categories), "one input per different text"});
  g.notes.push_back(fmt::format("inputs: {} of numbers, {} of texts", counted(numbers, "column"),
                                categories.size()));
  add_missing(g, t, query, format, missing);
  if (numbers > 0)
    g.settings.push_back({"standardize", "true", "numbers become (x - mean) / std, about -1..1"});
  if (t.dropped > 0)
    g.notes.push_back(fmt::format("{} with missing values left out", counted(t.dropped, "line")));
}

void add_format(DataGuess& g, const CsvFormat& format) {
  if (format.delimiter != ',')
    g.settings.push_back(
        {"delimiter", delimiter_value(format.delimiter, '"'), "between two fields"});
  if (format.decimal != '.')
    g.settings.push_back({"decimal", fmt::format("\"{}\"", format.decimal), "as in 1,5"});
  if (format.header != CsvFormat::HeaderLine::automatic)
    g.settings.push_back({"header",
                          format.header == CsvFormat::HeaderLine::yes ? "\"yes\"" : "\"no\"",
                          "whether the first line names the columns"});
}

// The images are the last column, which is the target by default.
DataGuess guess_other_target(const GuessQuery& query, const ScannedColumns& t,
                             const ImageColumn& images) {
  if (t.profiles.size() != 2 || !query.target.empty())
    fail(Fault::data,
         "{}: column '{}' holds names of images, such as {}, which cannot be the target; name the "
         "target with --target",
         query.path, t.profiles[images.column].name(), images.first);
  GuessQuery other = query;
  other.target = t.head.reference(1 - images.column);
  return guess_csv(other);
}

}  // namespace

DataGuess guess_csv(const GuessQuery& query) {
  const std::string& path = query.path;
  const CsvFormat format = guess_csv_format(path, query.header, query.decimal);
  const ScannedColumns t = scan_columns(path, format, query);
  DataGuess g{.type = "csv",
              .name = fs::path(path).stem().string(),
              .is_table = true,
              .standardizes = true};
  g.notes.push_back(fmt::format("{}: a table of {} and {}{}", path, counted(t.rows, "sample"),
                                counted(t.head.columns(), "column"),
                                t.head.header ? ", named by the first line" : ", without names"));
  if (!t.head.doubt.empty())
    g.notes.push_back(fmt::format("warning: {} (--header {} of init)", t.head.header_warning(),
                                  t.head.header ? "no" : "yes"));
  g.settings.push_back({"path", path, "relative to this file", true});
  if (const std::string test = set_beside(g, path, "test", {"test"}, format, t); !test.empty())
    g.settings.push_back({"test_path", test, "samples for the evaluation", true});
  if (const std::string file =
          set_beside(g, path, "validation", {"val", "valid", "validation"}, format, t);
      !file.empty())
    g.validation = {{"path", file, "", true}};
  for (const ColumnProfile& c : t.profiles)
    if (format.delimiter != ',' && c.kind() == Kind::numbers && !c.thousands().empty())
      g.notes.push_back("warning: " + thousands_warning(c.name(), c.thousands()));
  const std::optional<ImageColumn> images = images_of(t, format, path);
  if (images && t.is_target(images->column)) return guess_other_target(query, t, *images);
  note_first_target(g, t, query);
  add_target(g, t, path, format);
  if (query.drops_missing_targets)
    g.settings.push_back({"missing_targets", "drop", "lines without a target are left out"});
  if (!images) {
    add_inputs(g, t, query, format);
  } else {
    add_images(g, t, *images, format, path);
    if (query.drops_missing)
      g.settings.push_back({"missing", "drop", "lines without a name or target are left out"});
    if (t.dropped > 0)
      g.notes.push_back(fmt::format("{} with missing values left out", counted(t.dropped, "line")));
  }
  add_format(g, format);
  return g;
}

}  // namespace dpt
