// Reads text tables of numbers (RFC 4180, except for line breaks inside quotes).
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dpt {

struct CsvFormat {
  char delimiter = ',';
  enum class HeaderLine { automatic, yes, no } header = HeaderLine::automatic;
  // The columns to read, named as for CsvTable::column(); empty: all. Fields of other columns may
  // hold any text, and count as 0.
  std::vector<std::string> columns{};
  // A column of words, of which each counts as its index in `words`. No words: there is none.
  std::string word_column{};
  std::vector<std::string> words{};
};

struct CsvTable {
  std::vector<std::string> names;  // of the columns; "0", "1", ... without a header line
  bool header = false;             // whether the first line has the names
  size_t rows = 0;
  std::vector<float> values;  // [rows, columns]
  size_t columns() const { return names.size(); }

  // The index of the column with this name, or else with this number, counted from 0 or, if
  // negative, from the end. Throws Error{data} that lists the names; `path` is the file's.
  size_t column(std::string_view name, const std::string& path) const;
};

// Reads a plain (uncompressed) file. Every field below the header must be one number, optionally
// quoted and surrounded by spaces; every line must have the same number of fields. Empty lines are
// skipped. With HeaderLine::automatic, the first line is a header if none of its fields looks like
// a number, not even like one that is refused (nan, 3e39, 0x10). Throws Error{data} as
// "path:line:column: ...", also for lines longer than 8 MiB and more than 262144 columns. Memory:
// the table and one line.
CsvTable read_csv(const std::string& path, const CsvFormat& format);

// One line of a text table. Valid during the call that receives it.
struct CsvLine {
  size_t number = 0;                    // of the line in the file, from 1
  std::span<const std::string> fields;  // without quotes and surrounding spaces
  bool header = false;                  // the line names the columns
};
// Calls `line` for each line that is not empty, until it returns false. Fields may hold any text,
// and lines may have different numbers of fields. Throws like read_csv().
void scan_csv(const std::string& path, const CsvFormat& format,
              const std::function<bool(const CsvLine&)>& line);

// Whether read_csv() accepts the text as a number; then `out` is its value.
bool parse_csv_number(std::string_view text, float& out);

// The column names in the first line; empty if it is not a header. Throws Error{data} like
// read_csv().
std::vector<std::string> read_csv_header(const std::string& path, const CsvFormat& format);

}  // namespace dpt
