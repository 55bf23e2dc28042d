#include "data/readers/csv.h"

#include <algorithm>
#include <charconv>
#include <cmath>
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
  std::string_view text;  // without quotes and surrounding spaces
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
      for (size_t i = 0; i < fields.size(); ++i)
        table.values.push_back(value(fields[i], i, table.names[i]));
      ++table.rows;
    }
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

  void choose_columns(const CsvTable& table) {
    kinds_.assign(table.columns(), format_.columns.empty() ? Kind::number : Kind::unused);
    for (const std::string& name : format_.columns)
      kinds_[table.column(name, path_)] = Kind::number;
    if (!format_.words.empty()) kinds_[table.column(format_.word_column, path_)] = Kind::word;
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

  void split(std::string_view line, std::vector<Field>& fields) const {
    fields.clear();
    for (size_t at = 0;;) {
      if (fields.size() == kMostColumns)
        fail(Fault::data, "{}:{}:{}: more than {} columns", path_, lines_.number(), at + 1,
             kMostColumns);
      size_t begin = line.find_first_not_of(' ', at);
      if (begin == std::string_view::npos) begin = line.size();
      size_t end = 0;
      if (begin < line.size() && line[begin] == '"') {
        end = line.find('"', begin + 1);
        if (end == std::string_view::npos)
          fail(Fault::data, "{}:{}:{}: an unclosed quote", path_, lines_.number(), begin + 1);
        fields.push_back({line.substr(begin + 1, end - begin - 1), begin + 1});
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

  float value(const Field& f, size_t column, std::string_view name) const {
    if (kinds_[column] == Kind::unused) return 0;
    if (kinds_[column] == Kind::word) return word(f, name);
    float value = 0;
    if (!parse_csv_number(f.text, value))
      fail(Fault::data, "{}:{}:{}: {}", path_, lines_.number(), f.column,
           why_no_number(f.text, name));
    return value;
  }

  float word(const Field& f, std::string_view column) const {
    const auto found = std::ranges::find(format_.words, f.text);
    if (found == format_.words.end())
      fail(Fault::data,
           "{}:{}:{}: '{:.40}' in column '{:.40}' is not one of the {} in `class_names`; add it to "
           "the list, or correct it",
           path_, lines_.number(), f.column, f.text, column,
           counted(format_.words.size(), "class", "classes"));
    return static_cast<float>(found - format_.words.begin());
  }

  // The problem with a field, and what to do.
  std::string why_no_number(std::string_view text, std::string_view column) const {
    for (const auto& [mark, name] : {std::pair{';', "';'"}, {'|', "'|'"}, {'\t', "tab"}})
      if (mark != format_.delimiter && text.find(mark) != text.npos)
        return fmt::format(
            "'{:.40}' is not a finite number; if {} stands between the numbers of this file, write "
            "`delimiter: {}`",
            text, mark == '\t' ? "a tab" : name, name);
    if (automatic() && lines_.number() == first_)
      return fmt::format(
          "'{:.40}' is not a finite number; if this line holds the names of the columns, write "
          "`header: yes`",
          text);
    if (text.empty())
      return fmt::format(
          "column '{:.40}' is empty on this line; enter a number, or delete the line", column);
    if (like_number(text))
      return fmt::format(
          "'{:.40}' in column '{:.40}' is not a finite number; correct it, or delete the line",
          text, column);
    return fmt::format(
        "'{:.40}' in column '{:.40}' is not a number; delete the column, or replace its text with "
        "numbers (classes: 0, 1, 2, ...)",
        text, column);
  }

  const std::string& path_;
  Lines lines_;
  CsvFormat format_;
  enum class Kind { unused, number, word };
  std::vector<Kind> kinds_;  // of the columns
  size_t first_ = 0;         // number of the first line that is not empty
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
