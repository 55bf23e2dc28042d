#include "data/readers/csv.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include <fmt/ranges.h>

#include "base/count.h"
#include "base/fail.h"
#include "base/one_line.h"
#include "base/utf8.h"
#include "data/readers/csv_header.h"

namespace dpt {
namespace {

CsvHeaderGuess header_of(const std::string& path, const CsvFormat& format) {
  if (format.header == CsvFormat::HeaderLine::automatic)
    return guess_csv_header(path, format.delimiter, format.decimal);
  return {.header = format.header == CsvFormat::HeaderLine::yes};
}

CsvHead head_of(std::span<const CsvField> fields, const CsvHeaderGuess& guess, char delimiter) {
  CsvHead out{.header = guess.header, .doubt = guess.doubt};
  for (const char mark : {';', ',', '\t', '|'})
    if (fields.size() == 1 && mark != delimiter && out.other_delimiter == '\0' &&
        fields[0].text.find(mark) != std::string_view::npos)
      out.other_delimiter = mark;
  for (const CsvField& f : fields)
    out.names.push_back(guess.header ? std::string(f.text) : std::to_string(out.names.size()));
  std::vector<std::string> unique = unique_csv_names(out.names);
  if (unique != out.names) out.written = std::exchange(out.names, std::move(unique));
  return out;
}

class Reader {
 public:
  Reader(const std::string& path, const CsvFormat& format)
      : path_(path),
        records_(path, format.delimiter),
        bytes_(records_.bytes_left()),
        format_(format),
        checks_points_(format.delimiter != ',' && format.decimal == '.') {}

  CsvTable read() {
    std::vector<CsvField> fields;
    while (records_.next(fields)) {
      if (table_.names.empty()) {
        begin(fields);
        if (table_.header) {
          bytes_ = records_.bytes_left();
          continue;
        }
      }
      if (fields.size() != table_.columns())
        refuse_csv_line(path_, records_.line(), fields, table_.columns());
      if (drops(fields)) continue;
      for (size_t i = 0; i < fields.size(); ++i) table_.values.push_back(value(fields[i], i));
      if (++table_.rows == kMeasuredFields / fields.size() + 1) reserve();
    }
    check_rows();
    for (size_t i = 0; i < table_.columns(); ++i) {
      if (kinds_[i] == Kind::text && !targets_[i] && may_merge(i)) merge_numbers(i);
      table_.texts[i] = texts_[i].texts();
      table_.thousands.emplace_back(points_[i].found());
    }
    return std::move(table_);
  }

 private:
  // After so many fields the file's size tells how many there will be.
  static constexpr size_t kMeasuredFields = 10'000;

  // Growing by doubling would have the values in memory three times.
  void reserve() {
    const auto most = static_cast<double>(bytes_);  // a field has a byte, its delimiter
    const auto read = static_cast<double>(bytes_ - records_.bytes_left());
    constexpr double kMargin = 1.02;
    const double expected = static_cast<double>(table_.values.size()) * kMargin * most / read;
    table_.values.reserve(static_cast<size_t>(std::min(expected, most)));
  }

  void begin(std::span<const CsvField> fields) {
    static_cast<CsvHead&>(table_) = head_of(fields, header_of(path_, format_), format_.delimiter);
    first_ = records_.line();
    kinds_.assign(table_.columns(), format_.columns.empty() ? Kind::number : Kind::unused);
    for (const size_t i : format_.columns) kinds_[i] = Kind::number;
    texts_.resize(table_.columns());
    points_.resize(table_.columns());
    refuses_others_.resize(table_.columns());
    most_texts_.resize(table_.columns());
    for (const CsvFormat::TextColumn& t : format_.text_columns) {
      kinds_[t.column] = Kind::text;
      // Of categories, only a column of numbers alone has numbers of equal value as one text.
      const bool is_target = std::ranges::find(format_.targets, t.column) != format_.targets.end();
      texts_[t.column] =
          CsvTexts(t.known, is_target || (!t.known.empty() && all_csv_numbers(t.known)));
      refuses_others_[t.column] = t.refuses_others;
      most_texts_[t.column] =
          t.are_names ? CsvTexts::kNone : t.known.size() + CsvFormat::kMostTexts;
    }
    targets_.assign(table_.columns(), false);
    for (const size_t i : format_.targets) targets_[i] = true;
    table_.texts.resize(table_.columns());
    table_.missing.assign(table_.columns(), 0);
  }

  void check_rows() const {
    if (table_.rows > 0) return;
    if (table_.dropped > 0 && format_.missing != CsvFormat::Missing::drop)
      fail(Fault::data,
           "{}: no line has a value in the target column, so `missing_targets: drop` leaves none",
           path_);
    if (table_.dropped > 0)
      fail(Fault::data,
           "{}: every line has a field without a value, so `missing: drop` leaves none; {}", path_,
           std::ranges::any_of(format_.text_columns, &CsvFormat::TextColumn::are_names)
               ? "enter names and targets"
               : "write `missing: mean`, or leave out columns with `exclude`");
    if (table_.names.empty())
      fail(Fault::data, "{} is empty; it needs a line for each sample", path_);
    if (automatic())
      fail(Fault::data,
           "{0}:{1}:1: this line, the only one, is taken for the names of the columns ('{2:.40}', "
           "...), so {0} holds no samples; if it is a sample, {3}",
           path_, first_, one_line(table_.names[0]),
           format_.advise_keys ? "write `header: no`" : "put a line with names above it");
    fail(Fault::data, "{} has a header, but no line below it", path_);
  }

  // Whether the column's field is read and has no value. A known text may be spelled like a missing
  // one.
  bool lacks_value(const CsvField& f, size_t column) const {
    return kinds_[column] != Kind::unused && is_missing_csv(f.text) &&
           (kinds_[column] != Kind::text || texts_[column].find(f.text) == CsvTexts::kNone);
  }

  // Counts the missing fields of a line that is left out.
  bool drops(std::span<const CsvField> fields) {
    const bool all = format_.missing == CsvFormat::Missing::drop;
    if (!all && !format_.drop_targets) return false;
    bool any = false;
    for (size_t i = 0; i < fields.size(); ++i)
      if ((all || targets_[i]) && lacks_value(fields[i], i)) ++table_.missing[i], any = true;
    if (any) ++table_.dropped;
    return any;
  }

  bool automatic() const { return format_.header == CsvFormat::HeaderLine::automatic; }

  double value(const CsvField& f, size_t column) {
    if (kinds_[column] == Kind::unused) return 0;
    double value = 0;
    if (kinds_[column] == Kind::number && parse_csv_number(f.text, value, format_.decimal)) {
      if (checks_points_) points_[column].add(f.text);
      return value;
    }
    if (kinds_[column] == Kind::number && targets_[column] && format_.label_words)
      if (const std::optional<double> label = parse_csv_label(f.text)) {
        ++table_.label_words;
        return *label;
      }
    if (lacks_value(f, column)) {
      if (format_.missing == CsvFormat::Missing::keep && !targets_[column]) {
        ++table_.missing[column];
        return std::numeric_limits<double>::quiet_NaN();
      }
      if (kinds_[column] == Kind::text || format_.missing != CsvFormat::Missing::refuse)
        refuse(f, without_value(f.text, column));
    }
    if (kinds_[column] == Kind::text) return static_cast<double>(text_index(f, column));
    refuse(f, why_no_number(f.text, column));
  }

  [[noreturn]] void refuse(const CsvField& f, const std::string& why) const {
    fail(Fault::data, "{}:{}:{}: {}", path_, f.line, f.column, one_line(why));
  }

  size_t text_index(const CsvField& f, size_t column) {
    CsvTexts& texts = texts_[column];
    const std::string& name = table_.names[column];
    if (!refuses_others_[column].empty()) {
      const size_t at = texts.find(f.text);
      if (at == CsvTexts::kNone)
        refuse(f, fmt::format("'{:.40}' in column '{:.40}' is not one of the {} {}", f.text, name,
                              counted(texts.size(), "class", "classes"), refuses_others_[column]));
      return at;
    }
    const size_t index = texts.add(f.text);
    if (index == most_texts_[column])
      refuse(f,
             fmt::format("column '{:.40}' has more than {} different texts, so they are no {}{}",
                         name, CsvFormat::kMostTexts, targets_[column] ? "classes" : "categories",
                         targets_[column]      ? "; choose another target column"
                         : format_.advise_keys ? "; leave the column out with `exclude`"
                                               : "; compare it with that of the training file"));
    return index;
  }

  bool holds_names(size_t column) const {
    return std::ranges::any_of(format_.text_columns, [&](const CsvFormat::TextColumn& t) {
      return t.column == column && t.are_names;
    });
  }

  bool may_merge(size_t column) const {
    return std::ranges::all_of(format_.text_columns, [&](const CsvFormat::TextColumn& t) {
      return t.column != column || (t.known.empty() && !t.are_names);
    });
  }

  // Makes numbers of equal value one text, if the column of texts holds numbers only.
  void merge_numbers(size_t column) {
    const std::vector<std::string>& texts = texts_[column].texts();
    if (!all_csv_numbers(texts)) return;
    CsvTexts merged;
    std::vector<double> index;
    for (const std::string& text : texts) index.push_back(static_cast<double>(merged.add(text)));
    if (merged.size() == texts.size()) return;
    for (size_t r = 0; r < table_.rows; ++r)
      if (double& x = table_.values[r * table_.columns() + column]; !std::isnan(x))
        x = index[static_cast<size_t>(x)];
    texts_[column] = std::move(merged);
  }

  std::string without_value(std::string_view text, size_t column) const {
    const std::string& name = table_.names[column];
    const std::string what =
        text.empty()
            ? fmt::format("column '{:.40}' is empty on this line", name)
            : fmt::format("'{:.40}' in column '{:.40}' stands for a missing value", text, name);
    if (!format_.advise_keys)
      return what + (format_.advise_training ? "; enter a value, delete the line, or train with "
                                               "`missing: mean`, which fills such fields"
                                             : "; enter a value, or delete the line");
    if (holds_names(column))
      return what + "; enter the name, or leave such lines out with `missing: drop`";
    if (targets_[column])
      return what + "; enter the value, " +
             (kinds_[column] == Kind::text && !text.empty()
                  ? "list it in `class_names` with the other classes if it is one, "
                  : "") +
             "or leave such lines out with `missing_targets: drop`";
    return what +
           "; enter a value, fill such fields with `missing: mean`, leave such lines out with "
           "`missing: drop`, or leave the column out with `exclude`";
  }

  // The problem with a field, and what to do.
  std::string why_no_number(std::string_view text, size_t column) const {
    const std::string& name = table_.names[column];
    const bool keys = format_.advise_keys;
    for (const char mark : {';', '|', '\t'})
      if (mark != format_.delimiter && text.find(mark) != text.npos)
        return fmt::format(
            "'{:.40}' is not a finite number; if {} stands between the numbers of this file, {}",
            text, delimiter_text(mark),
            keys ? fmt::format("write `delimiter: {}`", delimiter_value(mark))
                 : fmt::format("write {} instead, as in the training file",
                               delimiter_text(format_.delimiter)));
    if (automatic() && records_.line() == first_ && (keys || !is_missing_csv(text)))
      return fmt::format(
          "'{:.40}' is not a finite number; if this line holds the names of the columns, {}", text,
          keys ? "write `header: yes`" : "remove it");
    if (is_missing_csv(text)) return without_value(text, column);
    const std::string what =
        fmt::format("'{:.40}' in column '{:.40}' is not a finite number", text, name);
    if (is_csv_date(text))
      return fmt::format(
          "'{:.40}' in column '{:.40}' is a date, not a number; write dates as numbers, {}", text,
          name, keys ? "or leave the column out with `exclude`" : "as in the training file");
    if (double value = 0; format_.decimal == ',' && parse_csv_number(text, value))
      return fmt::format(
          "{}, as decimals have commas ({}); {}", what,
          keys ? "`decimal: ','`" : "as in the training file",
          keys ? "leave out `decimal` if the file has decimal points" : "write commas for points");
    if (has_csv_separators(text, format_.decimal) && format_.decimal == '.')
      return what + "; remove thousands separators, and if the file has decimal commas, write " +
             (keys ? "`decimal: ','`" : "points for these");
    if (has_csv_separators(text, format_.decimal)) return what + "; remove thousands separators";
    if (is_infinite_csv(text))
      return fmt::format(
          "'{:.40}' in column '{:.40}' is not finite, or exceeds 3.4e38, the largest float32; "
          "correct "
          "it, or delete the line",
          text, name);
    if (const MarkedNumber m = marked_csv_number(text, format_.decimal); !m.what.empty())
      return fmt::format("'{:.40}' in column '{:.40}': {} are not read; write plain numbers: {}",
                         text, name, m.what, m.plain);
    if (like_csv_number(text)) return what + "; correct it, or delete the line";
    if (targets_[column] && format_.numbered_classes > 0)
      return fmt::format(
          "'{:.40}' in column '{:.40}' is not a number, but the {} of the training set are "
          "numbered: write a number from 0 to {}",
          text, name, counted(format_.numbered_classes, "class", "classes"),
          format_.numbered_classes - 1);
    return fmt::format("'{:.40}' in column '{:.40}' is not a number; {}", text, name,
                       !keys ? "the model takes a number: correct it, or delete the line"
                       : targets_[column] && format_.label_words
                           ? "labels are 0 and 1, True and False, or yes and no"
                       : targets_[column]
                           ? "for classes that are named by texts write `classes: auto`"
                           : "correct it, list a column of texts in `categories`, or leave the "
                             "column out with `exclude`");
  }

  const std::string& path_;
  CsvRecords records_;
  uint64_t bytes_;  // of the file, below the header
  const CsvFormat& format_;
  CsvTable table_;
  enum class Kind { unused, number, text };
  std::vector<Kind> kinds_;              // of the columns
  std::vector<bool> targets_;            // whether a column is to be predicted
  std::vector<CsvTexts> texts_;          // of each column
  std::vector<ThousandsPoints> points_;  // likewise
  bool checks_points_ = false;
  std::vector<std::string> refuses_others_;  // CsvFormat::TextColumn::refuses_others
  std::vector<size_t> most_texts_;
  size_t first_ = 0;  // number of the first line that is not empty
};

}  // namespace

std::vector<size_t> CsvHead::columns_written(std::string_view name) const {
  std::vector<size_t> out;
  for (size_t i = 0; i < written.size(); ++i)
    if (written[i] == name) out.push_back(i);
  return out;
}

std::string CsvHead::delimiter_hint() const {
  if (other_delimiter == '\0') return "";
  return fmt::format(
      "; {} seems to stand between its fields, which is not the `delimiter` of the spec: save the "
      "file with that one",
      delimiter_text(other_delimiter));
}

std::string CsvHead::header_warning() const {
  if (doubt.empty()) return "";
  return doubt + (header ? "; if it is a sample, write `header: no`"
                         : "; if it names the columns, write `header: yes`");
}

size_t CsvHead::column(std::string_view name, const std::string& path) const {
  if (const std::vector<size_t> same = columns_written(name); same.size() > 1)
    fail(Fault::data,
         "{} has {} columns '{:.40}': {}, counted from 0; give the number of the column instead of "
         "its name",
         path, same.size(), name, fmt::join(same, ", "));
  const auto found = std::ranges::find(names, name);
  if (found != names.end()) return static_cast<size_t>(found - names.begin());
  int64_t number = 0;
  const auto count = static_cast<int64_t>(columns());
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error == std::errc() && end == name.data() + name.size() && number >= -count &&
      number < count)
    return static_cast<size_t>(number < 0 ? number + count : number);
  refuse_name(name, path);
}

void CsvHead::refuse_name(std::string_view name, const std::string& path) const {
  std::string known;
  for (size_t i = 0; i < std::min<size_t>(columns(), 30); ++i)
    known += fmt::format("{}{:.40}", i > 0 ? ", " : "", one_line(names[i]));
  fail(Fault::data, "{} has no column '{}'; it has {}: {}{}{}", path, one_line(name),
       counted(columns(), "column"), known, columns() > 30 ? ", ..." : "", delimiter_hint());
}

std::string CsvHead::reference(size_t index) const {
  const std::string& name = names[index];
  if (std::ranges::count(written, name) < 2 && find_control(name, "\n\t") == name.npos) return name;
  std::string number = std::to_string(index);
  if (std::ranges::find(names, number) == names.end()) return number;
  return std::to_string(static_cast<int64_t>(index) - static_cast<int64_t>(columns()));
}

std::vector<std::string> unique_csv_names(std::vector<std::string> names) {
  std::set<std::string> used(names.begin(), names.end());
  if (used.size() == names.size()) return names;
  std::map<std::string, size_t> repetitions;
  for (std::string& name : names) {
    const auto [count, first] = repetitions.try_emplace(name, 0);
    if (first) continue;
    std::string numbered;
    do numbered = fmt::format("{}.{}", name, ++count->second);
    while (!used.insert(numbered).second);
    name = std::move(numbered);
  }
  return names;
}

void scan_csv(const std::string& path, const CsvFormat& format,
              const std::function<bool(const CsvLine&)>& line) {
  CsvRecords records(path, format.delimiter);
  const bool has_header = header_of(path, format).header;
  std::vector<CsvField> fields;
  for (bool first = true; records.next(fields); first = false)
    if (!line({.number = records.line(), .fields = fields, .header = first && has_header})) return;
}

CsvTable read_csv(const std::string& path, const CsvFormat& format) {
  return Reader(path, format).read();
}

CsvHead read_csv_head(const std::string& path, const CsvFormat& format) {
  CsvRecords records(path, format.delimiter);
  std::vector<CsvField> fields;
  if (!records.next(fields)) return {};
  return head_of(fields, header_of(path, format), format.delimiter);
}

}  // namespace dpt
