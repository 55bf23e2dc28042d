// Splits a text table into records and fields (RFC 4180).
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/readers/text_lines.h"

namespace dpt {

struct CsvField {
  std::string_view text;  // without quotes and surrounding spaces; valid until the next record
  size_t line = 0, column = 0;  // of its first character, both from 1
};

// Whether one of these columns lacks a value, so that `missing: drop` leaves the line out.
bool lacks_csv_value(std::span<const CsvField> fields, std::span<const size_t> columns);

// "';'", "a tab".
std::string delimiter_text(char delimiter);
// The value of the key `delimiter`: "';'", "tab".
std::string delimiter_value(char delimiter, char quote = '\'');

// A record is a line, or several if a field in quotes has line breaks. Throws Error{data} as
// "path:line:column: ..." for wrong quotes, more than kMostColumns fields, and like TextLines.
class CsvRecords {
 public:
  static constexpr size_t kMostColumns = size_t{1} << 18;

  // `path` must outlive the object.
  CsvRecords(const std::string& path, char delimiter)
      : path_(path), lines_(path), delimiter_(delimiter) {}

  // Gets the next record that is not blank, and not Excel's first line `sep=;`. Returns false at
  // the end of the file.
  bool next(std::vector<CsvField>& fields);
  size_t line() const { return line_; }  // number of the record's first line, from 1
  uint64_t bytes_left() const { return lines_.bytes_left(); }  // see TextLines

 private:
  bool is_separator_line() const;
  void split(std::vector<CsvField>& fields);
  size_t quoted_field(size_t begin, std::vector<CsvField>& fields);
  size_t closing_quote(size_t begin, std::vector<CsvField>& fields);
  void move_texts(uintptr_t before, size_t size, std::vector<CsvField>& fields) const;
  size_t column_of(size_t offset) const { return offset - line_begin_ + 1; }
  [[noreturn]] void refuse_text_after(size_t end, size_t opened) const;

  const std::string& path_;
  TextLines lines_;
  char delimiter_;
  std::string_view record_;
  size_t line_ = 0;
  size_t line_begin_ = 0;              // offset in record_ of the last line that was read
  std::deque<std::string> unescaped_;  // fields of the record that have quotes within
};

}  // namespace dpt
