// Reads text tables of numbers (RFC 4180, except for line breaks inside quotes).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace dpt {

struct CsvFormat {
  char delimiter = ',';
  enum class HeaderLine { automatic, yes, no } header = HeaderLine::automatic;
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

// The column names in the first line; empty if it is not a header. Throws Error{data} like
// read_csv().
std::vector<std::string> read_csv_header(const std::string& path, const CsvFormat& format);

}  // namespace dpt
