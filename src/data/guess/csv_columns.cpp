#include "data/guess/csv_columns.h"

#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/count.h"
#include "base/fail.h"
#include "base/lower_case.h"
#include "base/one_line.h"
#include "data/guess/csv_images.h"
#include "data/readers/csv_header.h"

namespace dpt {
namespace {

using Kind = ColumnProfile::Kind;

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
void profile(ScannedColumns& t, const std::string& path, const CsvFormat& format,
             std::span<const size_t> needed) {
  t.profiles.clear();
  for (size_t i = 0; i < t.head.columns(); ++i)
    t.profiles.emplace_back(t.head.names[i], format.decimal, t.missing_is_class && t.is_target(i));
  t.target_texts = {};
  t.rows = t.dropped = 0;
  scan_csv(path, format, [&](const CsvLine& line) {
    if (line.header) return true;
    if (t.rows + t.dropped == 0 && format.header == CsvFormat::HeaderLine::automatic &&
        !t.head.header)
      t.doubtful_line = line.number;
    if (line.fields.size() != t.profiles.size())
      refuse_csv_line(path, line.number, line.fields, t.head.columns());
    if (t.head.header)
      refuse_repeated_header(path, line.number, line.fields,
                             t.head.written.empty() ? t.head.names : t.head.written);
    if (lacks_csv_value(line.fields, needed)) return ++t.dropped > 0;
    for (size_t i = 0; i < t.profiles.size(); ++i) t.profiles[i].add(line.fields[i]);
    if (const std::string_view text = line.fields[t.targets[0]].text;
        t.targets.size() == 1 && t.target_texts.size() <= kMostCsvClasses &&
        (t.missing_is_class ? !text.empty() : !is_missing_csv(text)))
      t.target_texts.add(text);
    ++t.rows;
    return true;
  });
}

// Whether a name is that of an index: id, user_id, PassengerId, rownames, or none.
bool names_index(std::string_view name) {
  const std::string lower = lower_case(std::string(name));
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
std::string why_left_out(const ScannedColumns& t, const ColumnProfile& c, bool rising) {
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
  if (names_images(c))
    return fmt::format("it holds names of images, such as {}, which a CSV data set cannot load",
                       c.first_word());
  return fmt::format("its {} different texts, such as {}, are too many for categories",
                     c.words().size() <= ColumnProfile::kMostWords
                         ? std::to_string(c.words().size())
                         : fmt::format("more than {}", ColumnProfile::kMostWords),
                     c.first_word());
}

std::vector<size_t> used_columns(const ScannedColumns& t) {
  const std::vector<std::string> reasons = reasons_left_out(t);
  std::vector<size_t> out;
  for (size_t i = 0; i < reasons.size(); ++i)
    if (reasons[i].empty()) out.push_back(i);
  return out;
}

// Profiles the lines that training keeps: those with a value in each column that is used. Which
// columns these are depends on the lines.
void drop_lines(ScannedColumns& t, const std::string& path, const CsvFormat& format) {
  constexpr int kPasses = 4;
  std::vector<size_t> needed;
  for (int pass = 0; pass < kPasses; ++pass) {
    std::vector<size_t> used = used_columns(t);
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

}  // namespace

std::string ScannedColumns::advice(const ColumnProfile& c, const std::string& otherwise) const {
  const bool first = doubtful_line > 0 && c.words().size() == 1 &&
                     c.words().begin()->second.line == doubtful_line &&
                     c.words().begin()->second.count == 1;
  return first ? "if this line names the columns, use --header yes; otherwise " + otherwise
               : otherwise;
}

std::vector<std::string> reasons_left_out(const ScannedColumns& t) {
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

LackingLines count_lacking(const ScannedColumns& t, const std::string& path,
                           const CsvFormat& format) {
  const std::vector<size_t> used = used_columns(t);
  LackingLines out;
  scan_csv(path, format, [&](const CsvLine& line) {
    if (line.header) return true;
    if (lacks_csv_value(line.fields, t.targets)) ++out.targets;
    if (lacks_csv_value(line.fields, used)) ++out.all;
    return true;
  });
  return out;
}

void check_input(const ScannedColumns& t, size_t column, const std::string& path) {
  const ColumnProfile& c = t.profiles[column];
  if (c.kind() != Kind::broken || t.is_category(column)) return;
  fail(Fault::data, "{}: column '{}' {}; {}", path, c.name(), c.why_broken(),
       t.advice(c, c.correction() + (c.is_marked() ? "" : " (an empty one is a missing value)") +
                       ", leave the column out with --exclude, "
                       "or take its texts as categories with --categories" +
                       (c.has_separators() ? decimal_advice(t.decimal) : "")));
}

ScannedColumns scan_columns(const std::string& path, const CsvFormat& format,
                            const GuessQuery& query) {
  ScannedColumns t{.head = read_csv_head(path, format)};
  t.decimal = format.decimal;
  t.missing_is_class = query.missing_is_class;
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
  // A target without any value is told as such.
  if (t.profiles[t.targets[0]].kind() == Kind::empty) return t;
  if (query.drops_missing)
    drop_lines(t, path, format);
  else if (query.drops_missing_targets)
    profile(t, path, format, t.targets);
  return t;
}

}  // namespace dpt
