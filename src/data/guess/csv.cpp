// What the columns of a CSV file are: numbers, texts, indices; and which the targets are.
#include "data/readers/csv.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/count.h"
#include "base/fail.h"
#include "base/one_line.h"
#include "base/utf8.h"
#include "data/column_profile.h"
#include "data/guess/csv_format.h"
#include "data/guess/guess.h"
#include "data/readers/csv_header.h"

namespace dpt {
namespace {

namespace fs = std::filesystem;
using Kind = ColumnProfile::Kind;

constexpr size_t kMostClasses = 1000;

struct Columns {
  CsvHead head;
  std::vector<ColumnProfile> profiles;
  std::vector<size_t> targets, exclude, categories;  // the last two: by the query
  CsvTexts target_texts;  // of the first target, if there is one only; up to kMostClasses + 1
  size_t rows = 0, dropped = 0;  // lines that are used, and that are left out for want of a value
  char decimal = '.';
  // The number of the first line if that is a sample by its fields alone, and may be a header; else
  // 0.
  size_t doubtful_line = 0;

  // What to do about a column whose only text is in a first line that may be a header.
  std::string advice(const ColumnProfile& c, const std::string& otherwise) const {
    const bool first = doubtful_line > 0 && c.words().size() == 1 &&
                       c.words().begin()->second.line == doubtful_line &&
                       c.words().begin()->second.count == 1;
    return first ? "if this line names the columns, use --header yes; otherwise " + otherwise
                 : otherwise;
  }
  bool is_category(size_t column) const {
    return std::ranges::find(categories, column) != categories.end();
  }
  bool is_target(size_t column) const {
    return std::ranges::find(targets, column) != targets.end();
  }
};

// The names in "a,b": one in quotes may have commas, and quotes written twice, as a field of a CSV.
std::vector<std::string> names_in(const std::string& wanted) {
  std::vector<std::string> out;
  for (size_t at = 0; at <= wanted.size();) {
    std::string& name = out.emplace_back();
    const size_t begin = wanted.find_first_not_of(' ', at);
    if (begin == wanted.npos || wanted[begin] != '"') {
      const size_t end = std::min(wanted.find(',', at), wanted.size());
      name = wanted.substr(at, end - at);
      at = end + 1;
      continue;
    }
    for (at = begin + 1; at < wanted.size(); ++at) {
      if (wanted[at] == '"' && (at + 1 == wanted.size() || wanted[at + 1] != '"')) break;
      if (wanted[at] == '"') ++at;
      name += wanted[at];
    }
    const size_t next = wanted.find_first_not_of(' ', std::min(at + 1, wanted.size()));
    if (at >= wanted.size() || (next != wanted.npos && wanted[next] != ','))
      fail(Fault::spec,
           "--target {}: write a name with a comma in quotes, and commas between the names: "
           "'\"a, b\",c'",
           wanted);
    at = next == wanted.npos ? wanted.size() + 1 : next + 1;
  }
  return out;
}

// "a,b": a column of this name, or columns with these.
std::vector<size_t> columns_named(const CsvHead& head, const std::string& wanted,
                                  const std::string& path, std::string_view option) {
  std::vector<size_t> out;
  if (wanted.empty()) return out;
  if (std::ranges::find(head.names, wanted) != head.names.end()) return {head.column(wanted, path)};
  for (const std::string& name : names_in(wanted)) {
    out.push_back(head.column(name, path));
    if (std::ranges::count(out, out.back()) > 1)
      fail(Fault::spec, "{} names column '{}' twice", option, one_line(head.names[out.back()]));
  }
  return out;
}

std::vector<size_t> target_columns(const CsvHead& head, const std::string& wanted,
                                   const std::string& path) {
  if (wanted.empty()) return {head.columns() - 1};
  return columns_named(head, wanted, path, "--target");
}

// Profiles the columns. Lines that lack a value in one of `needed` are left out.
void profile(Columns& t, const std::string& path, const CsvFormat& format,
             std::span<const size_t> needed) {
  t.profiles.clear();
  for (const std::string& name : t.head.names) t.profiles.emplace_back(name, format.decimal);
  t.target_texts = {};
  t.rows = t.dropped = 0;
  scan_csv(path, format, [&](const CsvLine& line) {
    if (line.header) return true;
    if (t.rows + t.dropped == 0 && format.header == CsvFormat::HeaderLine::automatic &&
        !t.head.header)
      t.doubtful_line = line.number;
    if (line.fields.size() != t.profiles.size())
      refuse_csv_line(path, line.number, line.fields, t.head.columns());
    if (lacks_csv_value(line.fields, needed)) return ++t.dropped > 0;
    for (size_t i = 0; i < t.profiles.size(); ++i) t.profiles[i].add(line.fields[i]);
    if (const std::string_view text = line.fields[t.targets[0]].text;
        t.targets.size() == 1 && t.target_texts.size() <= kMostClasses && !is_missing_csv(text))
      t.target_texts.add(text);
    ++t.rows;
    return true;
  });
}

Columns scan(const std::string& path, const CsvFormat& format, const GuessQuery& query) {
  Columns t{.head = read_csv_head(path, format)};
  t.decimal = format.decimal;
  t.targets = target_columns(t.head, query.target, path);
  t.exclude = columns_named(t.head, query.exclude, path, "--exclude");
  t.categories = columns_named(t.head, query.categories, path, "--categories");
  for (const size_t i : t.targets)
    for (const auto& [list, option] :
         {std::pair(&t.exclude, "--exclude"), {&t.categories, "--categories"}})
      if (std::ranges::find(*list, i) != list->end())
        fail(Fault::spec, "{} names column '{}', which is a target", option,
             one_line(t.head.names[i]));
  profile(t, path, format, {});
  if (t.rows < 2)
    fail(Fault::data, "{} has {}; training needs at least 2", path, counted(t.rows, "sample"));
  return t;
}

// Whether the classes are 0, 1, 2, ... written as such, which need no names.
bool counts_from_zero(const std::vector<std::string>& classes) {
  for (size_t i = 0; i < classes.size(); ++i)
    if (classes[i] != std::to_string(i)) return false;
  return true;
}

enum class Task { classification, regression };

// Throws Error{data} if the column cannot be predicted.
void check_target(const Columns& t, const ColumnProfile& target, const std::string& path,
                  bool drops) {
  const auto other = "or choose another column with --target";
  if (target.kind() == Kind::empty)
    fail(Fault::data,
         "{}: the target column '{}' has no value in any line; choose another column "
         "with --target",
         path, target.name());
  if (target.missing() > 0 && !drops)
    fail(Fault::data,
         "{}:{}:{}: the target column '{}' {} on this line{}; leave such lines out with --missing "
         "drop, {}",
         path, target.missing_line(), target.missing_column(), target.name(),
         target.missing_text().empty()
             ? "is empty"
             : fmt::format("has '{}', which stands for a missing value,", target.missing_text()),
         target.missing() > 1 ? " and on " + counted(target.missing() - 1, "other") : "", other);
  if (target.kind() == Kind::broken)
    fail(Fault::data, "{}: the target column '{}' {}; {}, {}", path, target.name(),
         target.why_broken(), t.advice(target, target.correction()), other);
  if (target.kind() == Kind::dates)
    fail(Fault::data,
         "{}: the target column '{}' holds dates, such as {}; write them as numbers, {}", path,
         target.name(), target.first_word(), other);
}

// Few different whole numbers or texts are classes.
Task task_of(const Columns& t, const std::string& path) {
  constexpr size_t kFew = 20;
  const ColumnProfile& target = t.profiles[t.targets[0]];
  const size_t given = target.rows() - target.missing(), different = t.target_texts.size();
  if (target.kind() == Kind::numbers)
    return target.whole() && different <= kFew && different * 5 <= given ? Task::classification
                                                                         : Task::regression;
  if (different > kMostClasses || different * 2 > given)
    fail(Fault::data,
         "{}: the target column '{}' has {} different values of text in {} lines, so they cannot "
         "be classes; choose another column with --target",
         path, target.name(),
         different <= kMostClasses ? fmt::format("{}", different)
                                   : fmt::format("more than {}", kMostClasses),
         given);
  return Task::classification;
}

// Whether a name is that of an index: id, user_id, PassengerId, rownames, or none.
bool names_index(std::string_view name) {
  std::string lower(name);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  for (const char* const word : {"", "id", "ids", "idx", "index", "uuid", "guid", "rowid",
                                 "rowname", "rownames", "row_names"})
    if (lower == word) return true;
  if (lower.starts_with("unnamed: ")) return true;  // pandas' name for a column without one
  if (lower.size() < 3 || !lower.ends_with("id")) return false;
  const char before = name[name.size() - 3];
  const bool word = before == '_' || before == '-' || before == ' ' || before == '.';
  const bool camel = before >= 'a' && before <= 'z' && name[name.size() - 2] == 'I';
  return word || camel;
}

std::string same_value(const ColumnProfile& c) {
  return c.missing() > 0 ? "it has the same value in all lines that have one"
                         : "it has the same value in all lines";
}

std::string decimal_advice(char decimal) {
  return fmt::format("; if '{0}' is the decimal mark of the file, use --decimal '{0}'",
                     decimal == '.' ? ',' : '.');
}

// Why a column is no input; empty if it is one, or is to be corrected. rising: whether one of
// rising numbers may be.
std::string why_left_out(const Columns& t, const ColumnProfile& c, bool rising) {
  const auto at = static_cast<size_t>(&c - t.profiles.data());
  if (std::ranges::find(t.exclude, at) != t.exclude.end()) return "--exclude names it";
  if (t.is_category(at)) return "";
  constexpr size_t kMostRising = 10;  // so few lines may be in order by chance
  switch (c.kind()) {
    case Kind::empty:
      return "it has no value in any line";
    case Kind::broken:
      if (!c.can_be_corrected())
        return fmt::format("it {}{}", c.why_broken(),
                           c.is_marked() ? "; " + c.correction() + " to use them" : "");
      return "";
    case Kind::dates:
      return fmt::format("it holds dates, such as {}; write them as numbers to use them",
                         c.first_word());
    case Kind::numbers:
      if (names_index(c.name())) return "it is named as an index";
      if (c.different() == 1) return same_value(c);
      return !rising && c.rises() && c.rows() > kMostRising
                 ? "its whole numbers rise from line to line, as those of an index do"
                 : "";
    case Kind::texts:
      break;
  }
  if (names_index(c.name())) return "it is named as an index";
  if (c.different() == 1) return same_value(c);
  if (c.different() <= ColumnProfile::kFew && c.different() * 2 <= c.rows()) return "";
  return fmt::format("its {} different texts, such as {}, are too many for categories",
                     c.words().size() <= ColumnProfile::kMostWords
                         ? std::to_string(c.words().size())
                         : fmt::format("more than {}", ColumnProfile::kMostWords),
                     c.first_word());
}

// For each column why it is no input; empty for targets.
std::vector<std::string> reasons_left_out(const Columns& t) {
  std::vector<std::string> out;
  // A single input is no index.
  for (const bool rising : {false, true}) {
    out.assign(t.profiles.size(), "");
    bool inputs = false;
    for (size_t i = 0; i < out.size(); ++i) {
      if (t.is_target(i)) continue;
      out[i] = why_left_out(t, t.profiles[i], rising);
      inputs = inputs || out[i].empty();
    }
    if (inputs) break;
  }
  return out;
}

// Throws Error{data} if a column of numbers has other texts, which must be corrected.
void check_input(const Columns& t, size_t column, const std::string& path) {
  const ColumnProfile& c = t.profiles[column];
  if (c.kind() != Kind::broken || t.is_category(column)) return;
  fail(Fault::data, "{}: column '{}' {}; {}", path, c.name(), c.why_broken(),
       t.advice(c, c.correction() + (c.is_marked() ? "" : " (an empty one is a missing value)") +
                       ", leave the column out with --exclude, "
                       "or take its texts as categories with --categories" +
                       (c.has_separators() ? decimal_advice(t.decimal) : "")));
}

// Profiles the lines that training keeps: those with a value in each column that is used. Which
// columns these are depends on the lines.
void drop_lines(Columns& t, const std::string& path, const CsvFormat& format) {
  constexpr int kPasses = 4;
  std::vector<size_t> needed;
  for (int pass = 0; pass < kPasses; ++pass) {
    const std::vector<std::string> reasons = reasons_left_out(t);
    std::vector<size_t> used;
    for (size_t i = 0; i < reasons.size(); ++i)
      if (reasons[i].empty()) used.push_back(i);
    if (used == needed) return;
    needed = std::move(used);
    profile(t, path, format, needed);
    if (t.rows < 2)
      fail(Fault::data,
           "{} has {} with a value in each column that is used; training needs at least 2: leave "
           "columns out with --exclude, or fill fields with --missing mean",
           path, counted(t.rows, "line"));
  }
}

std::string yaml_list(const std::vector<std::string>& texts) {
  std::string out;
  for (const std::string& t : texts) out += (out.empty() ? "" : ", ") + yaml_scalar(t);
  return "[" + out + "]";
}

// "DIR/test.csv" of "DIR/train.csv" if there is such a file, else nothing.
std::string test_file(const std::string& path) {
  const fs::path file(path);
  std::string stem = file.stem().string();
  const size_t at = stem.rfind("train");
  if (at == stem.npos) return "";
  const size_t length = stem.compare(at, 8, "training") == 0 ? 8 : 5;
  const fs::path test =
      file.parent_path() / (stem.replace(at, length, "test") + file.extension().string());
  std::error_code ignored;
  return fs::is_regular_file(test, ignored) ? test.string() : "";
}

// Why the test file lacks the columns that are used: those of competitions often have no target.
std::string why_no_test(const std::string& test, const CsvFormat& format, const Columns& t) {
  const CsvHead head = read_csv_head(test, format);
  for (const size_t i : t.targets) {
    const std::string& name = t.head.names[i];
    const bool has = t.head.header ? std::ranges::find(head.names, name) != head.names.end()
                                   : head.columns() == t.head.columns();
    if (!has) return fmt::format("{} has no column '{}'", test, one_line(name));
  }
  return "";
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

void add_several_targets(DataGuess& g, const Columns& t, const std::string& path, bool drops) {
  std::vector<std::string> references;
  // Words for labels are read only if all targets are labels.
  const bool labels = std::ranges::all_of(t.targets, [&](size_t i) {
    const ColumnProfile& c = t.profiles[i];
    return has_label_words(c) || (c.kind() == Kind::numbers && c.whole() && c.different() <= 2);
  });
  for (const size_t i : t.targets) {
    check_target(t, t.profiles[i], path, drops);
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

void add_target(DataGuess& g, const Columns& t, const std::string& path, bool drops) {
  if (t.targets.size() > 1) return add_several_targets(g, t, path, drops);
  const ColumnProfile& column = t.profiles[t.targets[0]];
  check_target(t, column, path, drops);
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

void add_inputs(DataGuess& g, const Columns& t, const std::string& path, bool drops) {
  std::vector<std::string> excluded, categories;
  size_t numbers = 0, missing = 0;
  const std::vector<std::string> reasons = reasons_left_out(t);
  for (size_t i = 0; i < t.profiles.size(); ++i) {
    if (t.is_target(i)) continue;
    const ColumnProfile& c = t.profiles[i];
    if (!reasons[i].empty()) {
      excluded.push_back(t.head.reference(i));
      g.notes.push_back(fmt::format("column '{}' is left out: {}", c.name(), reasons[i]));
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
         names_of(t.head, t.targets), g.notes.back());
  if (!excluded.empty())
    g.settings.push_back({"exclude", yaml_list(excluded), "columns that are no inputs"});
  if (!categories.empty())
    g.settings.push_back({"categories", yaml_list(categories), "one input per different text"});
  if (drops)
    g.settings.push_back({"missing", "drop", "lines with an empty field are left out"});
  else if (missing > 0)
    g.settings.push_back({"missing", "mean", "empty fields count as the column's mean"});
  if (numbers > 0)
    g.settings.push_back({"standardize", "true", "numbers become (x - mean) / std, about -1..1"});
  g.notes.push_back(fmt::format("inputs: {} of numbers, {} of texts", counted(numbers, "column"),
                                categories.size()));
  if (missing > 0) g.notes.push_back(fmt::format("{} missing", counted(missing, "value")));
  if (t.dropped > 0)
    g.notes.push_back(fmt::format("{} with missing values left out", counted(t.dropped, "line")));
}

void add_format(DataGuess& g, const CsvFormat& format) {
  if (format.delimiter != ',')
    g.settings.push_back(
        {"delimiter", format.delimiter == '\t' ? "tab" : fmt::format("\"{}\"", format.delimiter),
         "between two fields"});
  if (format.decimal != '.')
    g.settings.push_back({"decimal", fmt::format("\"{}\"", format.decimal), "as in 1,5"});
  if (format.header != CsvFormat::HeaderLine::automatic)
    g.settings.push_back({"header",
                          format.header == CsvFormat::HeaderLine::yes ? "\"yes\"" : "\"no\"",
                          "whether the first line names the columns"});
}

}  // namespace

DataGuess guess_csv(const GuessQuery& query) {
  const std::string& path = query.path;
  const CsvFormat format = guess_csv_format(path, query.header, query.decimal);
  Columns t = scan(path, format, query);
  // A target without any value is told as such.
  if (query.drops_missing && t.profiles[t.targets[0]].kind() != Kind::empty)
    drop_lines(t, path, format);
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
  if (const std::string test = test_file(path); !test.empty()) {
    if (const std::string why = why_no_test(test, format, t); !why.empty())
      g.notes.push_back(fmt::format("{}, so it is not used as a test set", why));
    else
      g.settings.push_back({"test_path", test, "samples for the evaluation", true});
  }
  for (const ColumnProfile& c : t.profiles)
    if (format.delimiter != ',' && c.kind() == Kind::numbers && !c.thousands().empty())
      g.notes.push_back("warning: " + thousands_warning(c.name(), c.thousands()));
  add_target(g, t, path, query.drops_missing);
  add_inputs(g, t, path, query.drops_missing);
  add_format(g, format);
  return g;
}

}  // namespace dpt
