// What the columns of a CSV file are: numbers, texts, counters; and which the target is.
#include "data/readers/csv.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/count.h"
#include "base/fail.h"
#include "data/guess/guess.h"

namespace dpt {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostClasses = 1000;

// What the fields of a column have in common.
struct Column {
  std::string name;
  size_t rows = 0, no_numbers = 0, missing = 0;  // missing fields are no numbers
  size_t bad_line = 0;                           // the first line whose field is no number
  size_t empty_line = 0;                         // the first line whose field is empty; 0: none is
  std::string bad_text;                          // that field
  bool whole = true;                             // all numbers are whole
  bool counts = true;                            // each number is one more than the one before
  double last = 0;
  std::map<std::string, size_t> texts;  // each text and how often it occurs, up to kMostClasses + 1

  void add(const std::string& text, size_t line) {
    if (texts.size() <= kMostClasses || texts.contains(text)) ++texts[text];
    if (text.empty() && empty_line == 0) empty_line = line;
    float value = 0;
    if (is_missing_csv(text)) ++missing;
    if (!parse_csv_number(text, value)) {
      if (no_numbers++ == 0) bad_line = line, bad_text = text;
      counts = false;
    } else {
      whole = whole && std::trunc(value) == value;
      counts = counts && (rows == 0 ? value == 0 || value == 1 : value == last + 1);
      last = value;
    }
    ++rows;
  }
  bool numbers() const { return no_numbers == 0; }
  bool numbers_or_missing() const { return no_numbers == missing && missing < rows; }
  // Few different texts are categories.
  bool categories() const {
    constexpr size_t kFew = 30;
    return texts.size() > 1 && texts.size() <= kFew && texts.size() * 2 <= rows && missing < rows;
  }
  bool texts_known() const { return texts.size() <= kMostClasses; }
};

struct Columns {
  std::vector<Column> columns;
  size_t rows = 0;
  bool header = false;
};

// How a delimiter splits the first lines.
struct FirstLines {
  size_t width = 0;  // fields of the first line
  bool same = true;  // all lines have so many
};
FirstLines split_by(const std::string& path, char delimiter) {
  constexpr size_t kLines = 20;
  FirstLines out;
  size_t lines = 0;
  try {
    scan_csv(path, {.delimiter = delimiter}, [&](const CsvLine& line) {
      if (lines == 0) out.width = line.fields.size();
      out.same = out.same && line.fields.size() == out.width;
      return ++lines < kLines;
    });
  } catch (const Error&) {  // text after a quoted field: another delimiter
    return {.width = 0, .same = false};
  }
  return out;
}

// The one that makes the most fields; those that make equally many in all lines come first.
char delimiter_of(const std::string& path) {
  char best = ',';
  FirstLines most;
  for (const char c : {',', ';', '\t', '|'})
    if (const FirstLines s = split_by(path, c);
        s.width > 1 &&
        (most.width == 0 || std::pair(s.same, s.width) > std::pair(most.same, most.width)))
      best = c, most = s;
  if (most.width == 0)
    fail(Fault::data,
         "{} is not a table: its first line has no , ; tab or | between two fields; make it a CSV "
         "with one sample per line",
         path);
  return best;
}

Columns scan(const std::string& path, char delimiter) {
  Columns t;
  scan_csv(path, {.delimiter = delimiter}, [&](const CsvLine& line) {
    if (t.columns.empty()) {
      t.header = line.header;
      for (size_t i = 0; i < line.fields.size(); ++i) {
        Column c;
        c.name = line.header ? line.fields[i] : std::to_string(i);
        t.columns.push_back(std::move(c));
      }
    }
    if (line.header) return true;
    if (line.fields.size() != t.columns.size())
      fail(Fault::data, "{}:{}:1: {}, where the first line has {}", path, line.number,
           counted(line.fields.size(), "field"), t.columns.size());
    for (size_t i = 0; i < t.columns.size(); ++i) t.columns[i].add(line.fields[i], line.number);
    ++t.rows;
    return true;
  });
  if (t.rows < 2)
    fail(Fault::data, "{} has {}; training needs at least 2", path, counted(t.rows, "sample"));
  return t;
}

// The texts of a column, as classes or categories.
std::vector<std::string> sorted_texts(const Column& c) {
  std::vector<std::string> out;
  for (const auto& [text, count] : c.texts) out.push_back(text);
  sort_csv_texts(out);
  return out;
}

// Whether the classes are 0, 1, 2, ... written as such, which need no names.
bool counts_from_zero(const std::vector<std::string>& classes) {
  for (size_t i = 0; i < classes.size(); ++i)
    if (classes[i] != std::to_string(i)) return false;
  return true;
}

enum class Task { classification, regression };

// Few different whole numbers or texts are classes.
Task task_of(const Column& target, size_t rows, const std::string& path) {
  constexpr size_t kFew = 20;
  if (target.numbers()) {
    const bool few = target.texts.size() <= kFew && target.texts.size() * 5 <= rows;
    return target.whole && few ? Task::classification : Task::regression;
  }
  if (target.empty_line > 0)
    fail(Fault::data,
         "{}:{}: the target column '{}' is empty on this line; delete such lines, or choose "
         "another column with --target",
         path, target.empty_line, target.name);
  if (!target.texts_known() || target.texts.size() * 2 > rows)
    fail(Fault::data,
         "{}: the target column '{}' has {} different values of text in {} lines, so they cannot "
         "be classes; choose another column with --target",
         path, target.name,
         target.texts_known() ? fmt::format("{}", target.texts.size())
                              : fmt::format("more than {}", kMostClasses),
         rows);
  return Task::classification;
}

size_t target_index(const Columns& t, const std::string& wanted, const std::string& path) {
  if (wanted.empty()) return t.columns.size() - 1;
  CsvTable names;
  for (const Column& c : t.columns) names.names.push_back(c.name);
  return names.column(wanted, path);
}

// Why a column is no input; empty if it is one.
std::string why_left_out(const Column& c) {
  const bool counter = c.counts && c.rows > 10;
  if (counter) return "it counts the lines";
  if (c.numbers_or_missing() || c.categories()) return "";
  if (c.missing == c.rows) return "it has no value in any line";
  if (c.texts.size() == 1) return "it has the same value in all lines";
  return fmt::format("{} different texts, such as '{:.20}' on line {}, are too many for categories",
                     c.texts_known() ? fmt::format("its {}", c.texts.size())
                                     : fmt::format("its more than {}", kMostClasses),
                     c.bad_text, c.bad_line);
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

// Whether the test file has the columns that are used: those of competitions often lack the target.
std::string why_no_test(const std::string& test, char delimiter, const Columns& t, size_t target) {
  std::string why;
  scan_csv(test, {.delimiter = delimiter}, [&](const CsvLine& line) {
    const bool has_target =
        !t.header ? line.fields.size() == t.columns.size()
                  : std::ranges::find(line.fields, t.columns[target].name) != line.fields.end();
    if (!has_target) why = fmt::format("{} has no column '{}'", test, t.columns[target].name);
    return false;
  });
  return why;
}

void add_target(DataGuess& g, const Columns& t, size_t target, const std::string& path) {
  const Column& column = t.columns[target];
  g.settings.push_back({"targets", yaml_scalar(column.name), "the column to predict"});
  if (task_of(column, t.rows, path) == Task::regression) {
    g.notes.push_back(fmt::format("target: column '{}', real numbers: regression", column.name));
    return;
  }
  const std::vector<std::string> classes = sorted_texts(column);
  if (classes.size() < 2)
    fail(Fault::data,
         "{}: the target column '{}' has the same value in all lines, so there is nothing to "
         "learn; choose another column with --target",
         path, column.name);
  g.notes.push_back(
      fmt::format("target: column '{}', {} classes: classification", column.name, classes.size()));
  if (counts_from_zero(classes)) {
    g.settings.push_back(
        {"classes", std::to_string(classes.size()), "classes 0, 1, ...; 0: values"});
  } else {
    g.class_names = classes;
    g.settings.push_back({"class_names", yaml_list(classes), "text of classes 0, 1, ..."});
  }
}

void add_inputs(DataGuess& g, const Columns& t, size_t target, const std::string& path) {
  std::vector<std::string> excluded, categories;
  size_t numbers = 0, missing = 0;
  for (size_t i = 0; i < t.columns.size(); ++i) {
    if (i == target) continue;
    const Column& c = t.columns[i];
    if (const std::string why = why_left_out(c); !why.empty()) {
      excluded.push_back(c.name);
      g.notes.push_back(fmt::format("column '{}' is left out: {}", c.name, why));
      continue;
    }
    missing += c.missing;
    if (c.numbers_or_missing())
      ++numbers;
    else
      categories.push_back(c.name);
  }
  if (numbers + categories.size() == 0)
    fail(Fault::data, "{} has no column to predict from other than the target '{}'; {}", path,
         t.columns[target].name, g.notes.back());
  if (!excluded.empty())
    g.settings.push_back({"exclude", yaml_list(excluded), "columns that are no inputs"});
  if (!categories.empty())
    g.settings.push_back({"categories", yaml_list(categories), "one input per different text"});
  if (missing > 0)
    g.settings.push_back({"missing", "mean", "empty fields count as the column's mean"});
  if (numbers > 0)
    g.settings.push_back({"standardize", "true", "numbers become (x - mean) / std, about -1..1"});
  g.notes.push_back(fmt::format("inputs: {} of numbers, {} of texts", counted(numbers, "column"),
                                categories.size()));
  if (missing > 0) g.notes.push_back(fmt::format("{} missing", counted(missing, "value")));
}

}  // namespace

DataGuess guess_csv(const std::string& path, const std::string& target) {
  const char delimiter = delimiter_of(path);
  const Columns t = scan(path, delimiter);
  const size_t at = target_index(t, target, path);
  DataGuess g{.type = "csv", .name = fs::path(path).stem().string()};
  g.notes.push_back(fmt::format("{}: a table of {} and {}{}", path, counted(t.rows, "sample"),
                                counted(t.columns.size(), "column"),
                                t.header ? ", named by the first line" : ", without names"));
  g.settings.push_back({"path", path, "relative to this file", true});
  if (const std::string test = test_file(path); !test.empty()) {
    if (const std::string why = why_no_test(test, delimiter, t, at); !why.empty())
      g.notes.push_back(fmt::format("{}, so it is not used as a test set", why));
    else
      g.settings.push_back({"test_path", test, "samples for the evaluation", true});
  }
  add_target(g, t, at, path);
  add_inputs(g, t, at, path);
  const bool tab = delimiter == '\t';
  if (delimiter != ',')
    g.settings.push_back(
        {"delimiter", tab ? "tab" : fmt::format("\"{}\"", delimiter), "between two fields"});
  return g;
}

}  // namespace dpt
