#include "data/readers/csv_records.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/fail.h"
#include "data/readers/csv_fields.h"

namespace dpt {

bool lacks_csv_value(std::span<const CsvField> fields, std::span<const size_t> columns) {
  return std::ranges::any_of(
      columns, [&](size_t i) { return i < fields.size() && is_missing_csv(fields[i].text); });
}

std::string delimiter_text(char delimiter) {
  return delimiter == '\t' ? "a tab" : fmt::format("'{}'", delimiter);
}

std::string delimiter_value(char delimiter, char quote) {
  return delimiter == '\t' ? "tab" : fmt::format("{0}{1}{0}", quote, delimiter);
}

bool CsvRecords::next(std::vector<CsvField>& fields) {
  do {
    if (!lines_.next(record_)) return false;
  } while (record_.find_first_not_of(" \t") == record_.npos || is_separator_line());
  line_ = lines_.number();
  line_begin_ = 0;
  unescaped_.clear();
  fields.clear();
  split(fields);
  return true;
}

// Excel's first line `sep=;`, which names the delimiter.
bool CsvRecords::is_separator_line() const {
  constexpr std::string_view kBegin = "sep=";
  if (lines_.number() != 1 || record_.size() != kBegin.size() + 1 || !record_.starts_with(kBegin))
    return false;
  if (record_.back() == delimiter_) return true;
  fail(Fault::data,
       "{}:1:1: the line `{}` says that {} stands between two fields; write "
       "`delimiter: {}`, or save the file with {}",
       path_, record_, delimiter_text(record_.back()), delimiter_value(record_.back(), '"'),
       delimiter_text(delimiter_));
}

void CsvRecords::split(std::vector<CsvField>& fields) {
  for (size_t at = 0;;) {
    if (fields.size() == kMostColumns)
      fail(Fault::data, "{}:{}:{}: more than {} columns", path_, lines_.number(), column_of(at),
           kMostColumns);
    size_t begin = at;
    while (begin < record_.size() && record_[begin] == ' ') ++begin;
    size_t end = 0;
    if (begin < record_.size() && record_[begin] == '"') {
      end = quoted_field(begin, fields);
    } else {
      end = record_.find(delimiter_, at);
      size_t last = std::max(std::min(end, record_.size()), begin);
      while (last > begin && record_[last - 1] == ' ') --last;
      fields.push_back({.text = {record_.data() + begin, last - begin},
                        .line = lines_.number(),
                        .column = column_of(begin)});
    }
    if (end == record_.npos) return;
    at = end + 1;
  }
}

// Returns the offset of the delimiter after the field; npos: it is the last one.
size_t CsvRecords::quoted_field(size_t begin, std::vector<CsvField>& fields) {
  CsvField field{.text = {}, .line = lines_.number(), .column = column_of(begin)};
  const size_t quote = closing_quote(begin, fields);
  field.text = record_.substr(begin + 1, quote - begin - 1);
  if (field.text.find('"') != field.text.npos) {
    std::string& plain = unescaped_.emplace_back();
    for (size_t i = 0; i < field.text.size(); ++i) {
      plain += field.text[i];
      if (field.text[i] == '"') ++i;
    }
    field.text = plain;
  }
  fields.push_back(field);
  const size_t end = record_.find_first_not_of(' ', quote + 1);
  if (end != record_.npos && record_[end] != delimiter_) refuse_text_after(quote, field.line);
  return end;
}

// Moves the texts of fields to where the record lies now; those in unescaped_ stay. before, size:
// where it lay, and how long it was.
void CsvRecords::move_texts(uintptr_t before, size_t size, std::vector<CsvField>& fields) const {
  for (CsvField& f : fields)
    if (const size_t offset = reinterpret_cast<uintptr_t>(f.text.data()) - before; offset <= size)
      f.text = {record_.data() + offset, f.text.size()};
}

// The quote that ends the field whose quote is at `begin`; two quotes stand for one in the text.
size_t CsvRecords::closing_quote(size_t begin, std::vector<CsvField>& fields) {
  const size_t line = lines_.number(), column = column_of(begin), size = record_.size();
  const auto before = reinterpret_cast<uintptr_t>(record_.data());
  for (size_t from = begin + 1;;) {
    const size_t end = record_.find('"', from);
    if (end == record_.npos) {
      from = record_.size();
      if (!lines_.extend(record_))
        fail(Fault::data,
             "{}:{}:{}: the quote that opens this field is not closed; close it, or put the field "
             "in quotes and double each quote in it",
             path_, line, column);
      line_begin_ = std::min(record_.find_first_not_of("\r\n", from), record_.size());
    } else if (end + 1 < record_.size() && record_[end + 1] == '"') {
      from = end + 2;
    } else {
      if (record_.size() != size) move_texts(before, size, fields);
      return end;
    }
  }
}

// quote: the offset of the one that closes the field; opened: the line on which the field begins.
void CsvRecords::refuse_text_after(size_t quote, size_t opened) const {
  const bool escaped = record_[quote - 1] == '\\';
  fail(Fault::data, "{}:{}:{}: text after a quoted field{}{}", path_, lines_.number(),
       column_of(record_.find_first_not_of(' ', quote + 1)),
       opened == lines_.number()
           ? ""
           : " that begins on line " + std::to_string(opened) + ", where a quote may be missing",
       escaped ? "; a quote in the field is written as two quotes, not as \\\"" : "");
}

}  // namespace dpt
