#include "data/readers/csv.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <utility>

#include "base/count.h"
#include "base/fail.h"
#include "base/units.h"
#include "data/readers/bytes.h"

namespace dpt {
namespace {

constexpr size_t kMostLine = 8 * kMiB, kMostColumns = size_t{1} << 18;

// Reads a file line by line, keeping only part of it in memory.
class Lines {
 public:
  explicit Lines(const std::string& path) : path_(path), source_(open_bytes(path)) {
    if (source_->compressed())
      fail(Fault::data, "{} is compressed; unpack it with gunzip first", path);
    left_ = source_->most_bytes();
  }

  // Gets the next line without its end (\n or \r\n); valid until the next call. Returns false at
  // the end.
  bool next(std::string_view& line) {
    ++number_;
    for (size_t from = begin_;;) {
      size_t end = text_.find('\n', from);
      if (end == std::string::npos && left_ == 0) end = text_.size();
      if (std::min(end, text_.size()) - begin_ > kMostLine)
        fail(Fault::data,
             "{}:{}:1: the line has more than {} MiB; a table has a line for each sample", path_,
             number_, kMostLine / kMiB);
      if (end == std::string::npos) {
        from = text_.size() - begin_;
        read_more();
        continue;
      }
      line = std::string_view(text_).substr(begin_, end - begin_);
      const bool more = begin_ < text_.size();
      begin_ = std::min(end + 1, text_.size());
      if (number_ == 1 && line.starts_with("\xef\xbb\xbf")) line.remove_prefix(3);  // BOM
      if (line.ends_with('\r')) line.remove_suffix(1);
      return more;
    }
  }
  size_t number() const { return number_; }  // of the current line, from 1

 private:
  void read_more() {
    constexpr uint64_t kBlock = kMiB;
    text_.erase(0, std::exchange(begin_, 0));
    const size_t kept = text_.size();
    text_.resize(kept + std::min(left_, kBlock));
    source_->read(std::as_writable_bytes(std::span(text_)).subspan(kept), "the text");
    left_ -= text_.size() - kept;
  }

  const std::string& path_;
  std::unique_ptr<ByteSource> source_;
  uint64_t left_ = 0;  // bytes not yet in text_
  std::string text_;
  size_t begin_ = 0;  // offset of the next line in text_
  size_t number_ = 0;
};

struct Field {
  std::string_view text;  // without quotes and surrounding spaces; valid until the next line
  size_t column = 0;      // of its first character, from 1
};

class Reader {
 public:
  Reader(const std::string& path, const CsvFormat& format)
      : path_(path), lines_(path), format_(format) {}

  CsvTable read() {
    CsvTable table;
    std::vector<Field> fields;
    while (next_line(fields)) {
      if (table.names.empty()) {
        table.header = is_header(fields);
        table.names = names_of(fields, table.header);
        first_ = lines_.number();
        choose_columns(table);
        if (table.header) continue;
      }
      if (fields.size() != table.columns())
        fail(Fault::data, "{}:{}:1: {}, where the first line has {}", path_, lines_.number(),
             counted(fields.size(), "field"), table.columns());
      if (drops(fields, table)) continue;
      for (size_t i = 0; i < fields.size(); ++i) table.values.push_back(value(fields[i], i, table));
      ++table.rows;
    }
    if (table.dropped > 0 && table.rows == 0)
      fail(Fault::data,
           "{}: every line has a field without a value, so `missing: drop` leaves none; write "
           "`missing: mean`, or leave out columns with `exclude`",
           path_);
    if (table.rows == 0 && table.header && automatic())
      fail(Fault::data,
           "{0}:{1}:1: '{2:.40}' is not a finite number, so this line, the only one, was taken for "
           "the names of the columns; {0} holds no numbers",
           path_, first_, table.names[0]);
    if (table.rows == 0) fail(Fault::data, "{} holds no numbers", path_);
    return table;
  }

  void scan(const std::function<bool(const CsvLine&)>& line) {
    std::vector<Field> fields;
    std::vector<std::string> texts;
    for (bool first = true; next_line(fields); first = false) {
      texts.clear();
      for (const Field& f : fields) texts.emplace_back(f.text);
      if (!line({lines_.number(), texts, first && is_header(fields)})) return;
    }
  }

  std::vector<std::string> header() {
    std::vector<Field> fields;
    if (!next_line(fields) || !is_header(fields)) return {};
    return names_of(fields, true);
  }

 private:
  static std::vector<std::string> names_of(const std::vector<Field>& fields, bool header) {
    std::vector<std::string> out;
    for (size_t i = 0; i < fields.size(); ++i)
      out.push_back(header ? std::string(fields[i].text) : std::to_string(i));
    return out;
  }

  void choose_columns(CsvTable& table) {
    kinds_.assign(table.columns(), format_.columns.empty() ? Kind::number : Kind::unused);
    for (const std::string& name : format_.columns)
      kinds_[table.column(name, path_)] = Kind::number;
    for (const std::string& name : format_.text_columns)
      kinds_[table.column(name, path_)] = Kind::text;
    if (!format_.words.empty()) kinds_[table.column(format_.word_column, path_)] = Kind::word;
    targets_.assign(table.columns(), false);
    for (const std::string& name : format_.targets) targets_[table.column(name, path_)] = true;
    table.texts.resize(table.columns());
    table.missing.assign(table.columns(), 0);
    known_.resize(table.columns());
  }

  // Whether the column's field is read and has no value. A word may be spelled like a missing one.
  bool lacks_value(const Field& f, size_t column) const {
    if (kinds_[column] == Kind::unused || !is_missing_csv(f.text)) return false;
    return kinds_[column] != Kind::word ||
           std::ranges::find(format_.words, f.text) == format_.words.end();
  }

  // Counts the missing fields of a line that is left out.
  bool drops(const std::vector<Field>& fields, CsvTable& table) const {
    if (format_.missing != CsvFormat::Missing::drop) return false;
    bool any = false;
    for (size_t i = 0; i < fields.size(); ++i)
      if (lacks_value(fields[i], i)) ++table.missing[i], any = true;
    if (any) ++table.dropped;
    return any;
  }

  bool automatic() const { return format_.header == CsvFormat::HeaderLine::automatic; }

  // Returns false at the end of the file.
  bool next_line(std::vector<Field>& fields) {
    std::string_view line;
    while (lines_.next(line))
      if (line.find_first_not_of(" \t") != std::string_view::npos) {
        split(line, fields);
        return true;
      }
    return false;
  }

  void split(std::string_view line, std::vector<Field>& fields) {
    fields.clear();
    unescaped_.clear();
    for (size_t at = 0;;) {
      if (fields.size() == kMostColumns)
        fail(Fault::data, "{}:{}:{}: more than {} columns", path_, lines_.number(), at + 1,
             kMostColumns);
      size_t begin = line.find_first_not_of(' ', at);
      if (begin == std::string_view::npos) begin = line.size();
      size_t end = 0;
      if (begin < line.size() && line[begin] == '"') {
        end = closing_quote(line, begin);
        fields.push_back({quoted(line.substr(begin + 1, end - begin - 1)), begin + 1});
        end = line.find_first_not_of(' ', end + 1);
        if (end != std::string_view::npos && line[end] != format_.delimiter)
          fail(Fault::data, "{}:{}:{}: text after a quoted field", path_, lines_.number(), end + 1);
      } else {
        end = line.find(format_.delimiter, at);
        std::string_view text =
            line.substr(begin, std::max(std::min(end, line.size()), begin) - begin);
        while (text.ends_with(' ')) text.remove_suffix(1);
        fields.push_back({text, begin + 1});
      }
      if (end == std::string_view::npos) return;
      at = end + 1;
    }
  }

  // The quote that ends the field whose quote is at `begin`; two quotes stand for one in the text.
  size_t closing_quote(std::string_view line, size_t begin) const {
    for (size_t from = begin + 1;;) {
      const size_t end = line.find('"', from);
      if (end == std::string_view::npos)
        fail(Fault::data, "{}:{}:{}: an unclosed quote", path_, lines_.number(), begin + 1);
      if (end + 1 == line.size() || line[end + 1] != '"') return end;
      from = end + 2;
    }
  }

  std::string_view quoted(std::string_view text) {
    if (text.find('"') == text.npos) return text;
    std::string plain;
    for (size_t i = 0; i < text.size(); ++i) {
      plain += text[i];
      if (text[i] == '"') ++i;
    }
    return unescaped_.emplace_back(std::move(plain));
  }

  bool is_header(const std::vector<Field>& fields) const {
    if (!automatic()) return format_.header == CsvFormat::HeaderLine::yes;
    return std::ranges::none_of(fields, like_number, &Field::text) &&
           std::ranges::any_of(fields, [](const Field& f) { return !f.text.empty(); });
  }

  // Whether the text looks like a number rather than a column name: a number, even one that is
  // refused (nan, 1e999, 0x10), or digits without letters (1,5 or 2026-01-31).
  static bool like_number(std::string_view text) {
    const auto digit = [](char c) { return c >= '0' && c <= '9'; };
    const auto letter = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || static_cast<signed char>(c) < 0;
    };
    if (std::ranges::any_of(text, digit) && std::ranges::none_of(text, letter)) return true;
    if (text.starts_with('+') || text.starts_with('-')) text.remove_prefix(1);
    if (text.empty()) return false;
    double value = 0;
    uint64_t hex = 0;
    const char *const begin = text.data(), *const end = begin + text.size();
    if (std::from_chars(begin, end, value).ptr == end) return true;
    return text.size() > 2 && (text.starts_with("0x") || text.starts_with("0X")) &&
           std::from_chars(begin + 2, end, hex, 16).ptr == end;
  }

  float value(const Field& f, size_t column, CsvTable& table) {
    if (kinds_[column] == Kind::unused) return 0;
    if (lacks_value(f, column)) {
      if (format_.missing == CsvFormat::Missing::keep && !targets_[column]) {
        ++table.missing[column];
        return std::numeric_limits<float>::quiet_NaN();
      }
      if (kinds_[column] != Kind::number || format_.missing != CsvFormat::Missing::refuse)
        refuse(f, without_value(f.text, column, table.names[column]));
    }
    if (kinds_[column] == Kind::word) return word(f, table.names[column]);
    if (kinds_[column] == Kind::text) return text_index(f, column, table);
    float value = 0;
    if (!parse_csv_number(f.text, value))
      refuse(f, why_no_number(f.text, column, table.names[column]));
    return value;
  }

  [[noreturn]] void refuse(const Field& f, const std::string& why) const {
    fail(Fault::data, "{}:{}:{}: {}", path_, lines_.number(), f.column, why);
  }

  float word(const Field& f, std::string_view column) const {
    const auto found = std::ranges::find(format_.words, f.text);
    if (found == format_.words.end())
      refuse(f, fmt::format("'{:.40}' in column '{:.40}' is not one of the {} {}", f.text, column,
                            counted(format_.words.size(), "class", "classes"), format_.words_are));
    return static_cast<float>(found - format_.words.begin());
  }

  float text_index(const Field& f, size_t column, CsvTable& table) {
    std::vector<std::string>& texts = table.texts[column];
    const auto [at, fresh] = known_[column].try_emplace(std::string(f.text), texts.size());
    if (fresh && texts.size() == CsvFormat::kMostTexts)
      refuse(f, fmt::format("column '{:.40}' has more than {} different texts, so they are no {}{}",
                            table.names[column], CsvFormat::kMostTexts,
                            targets_[column] ? "classes" : "categories",
                            targets_[column] ? "; choose another target column"
                                             : "; leave the column out with `exclude`"));
    if (fresh) texts.emplace_back(f.text);
    return static_cast<float>(at->second);
  }

  std::string without_value(std::string_view text, size_t column, std::string_view name) const {
    const std::string what =
        text.empty()
            ? fmt::format("column '{:.40}' is empty on this line", name)
            : fmt::format("'{:.40}' in column '{:.40}' stands for a missing value", text, name);
    if (!format_.advise_keys) return what + "; enter a value, or delete the line";
    if (targets_[column])
      return what + "; enter the value, or leave such lines out with `missing: drop`";
    return what +
           "; enter a value, fill such fields with `missing: mean`, leave such lines out with "
           "`missing: drop`, or leave the column out with `exclude`";
  }

  // The problem with a field, and what to do.
  std::string why_no_number(std::string_view text, size_t column, std::string_view name) const {
    for (const auto& [mark, word] : {std::pair{';', "';'"}, {'|', "'|'"}, {'\t', "tab"}})
      if (mark != format_.delimiter && text.find(mark) != text.npos)
        return fmt::format(
            "'{:.40}' is not a finite number; if {} stands between the numbers of this file, write "
            "`delimiter: {}`",
            text, mark == '\t' ? "a tab" : word, word);
    if (automatic() && lines_.number() == first_)
      return fmt::format(
          "'{:.40}' is not a finite number; if this line holds the names of the columns, write "
          "`header: yes`",
          text);
    if (is_missing_csv(text) && (text.empty() || format_.advise_keys))
      return without_value(text, column, name);
    if (like_number(text))
      return fmt::format(
          "'{:.40}' in column '{:.40}' is not a finite number; correct it, or delete the line",
          text, name);
    return fmt::format("'{:.40}' in column '{:.40}' is not a number; {}", text, name,
                       !format_.advise_keys ? "delete the column, or replace its text with numbers"
                       : targets_[column]
                           ? "for classes that are named by texts write `classes: auto`"
                           : "correct it, list a column of texts in `categories`, or leave the "
                             "column out with `exclude`");
  }

  const std::string& path_;
  Lines lines_;
  CsvFormat format_;
  enum class Kind { unused, number, word, text };
  std::vector<Kind> kinds_;    // of the columns
  std::vector<bool> targets_;  // whether a column is to be predicted
  std::vector<std::map<std::string, size_t, std::less<>>> known_;  // the index of each text
  std::deque<std::string> unescaped_;  // fields of the line that had quotes within
  size_t first_ = 0;                   // number of the first line that is not empty
};

}  // namespace

size_t CsvTable::column(std::string_view name, const std::string& path) const {
  const auto found = std::ranges::find(names, name);
  if (found != names.end()) return static_cast<size_t>(found - names.begin());
  int64_t number = 0;
  const auto count = static_cast<int64_t>(columns());
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error == std::errc() && end == name.data() + name.size() && number >= -count &&
      number < count)
    return static_cast<size_t>(number < 0 ? number + count : number);
  std::string known;
  for (size_t i = 0; i < std::min<size_t>(columns(), 30); ++i)
    known += fmt::format("{}{:.40}", i > 0 ? ", " : "", names[i]);
  fail(Fault::data, "{} has no column '{}'; it has {}: {}{}", path, name, counted(count, "column"),
       known, columns() > 30 ? ", ..." : "");
}

bool is_missing_csv(std::string_view text) {
  return text.empty() || std::ranges::find(CsvFormat::kMissingWords, text) !=
                             std::ranges::end(CsvFormat::kMissingWords);
}

void sort_csv_texts(std::vector<std::string>& texts) {
  std::ranges::sort(texts, [](const std::string& a, const std::string& b) {
    float x = 0, y = 0;
    const bool p = parse_csv_number(a, x), q = parse_csv_number(b, y);
    if (p && q && x != y) return x < y;
    return p != q ? p : a < b;
  });
}

bool parse_csv_number(std::string_view text, float& out) {
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;  // parsed as double and then rounded, as NumPy does
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  out = static_cast<float>(value);
  return error == std::errc() && end == text.data() + text.size() && std::isfinite(out);
}

void scan_csv(const std::string& path, const CsvFormat& format,
              const std::function<bool(const CsvLine&)>& line) {
  Reader(path, format).scan(line);
}

CsvTable read_csv(const std::string& path, const CsvFormat& format) {
  return Reader(path, format).read();
}

std::vector<std::string> read_csv_header(const std::string& path, const CsvFormat& format) {
  return Reader(path, format).header();
}

}  // namespace dpt
