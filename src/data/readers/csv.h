// Tables of numbers as text (RFC 4180, but for line ends inside quotes).
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
  bool header = false;             // whether the first line named them
  size_t rows = 0;
  std::vector<float> values;  // [rows, columns]
  size_t columns() const { return names.size(); }

  // The column with this name, or else this number, counted from 0, or from the end if negative.
  // Throws Error{data} with the names that there are; `path` is the file's.
  size_t column(std::string_view name, const std::string& path) const;
};

// Reads a plain file. Every field but the header's must be one number, in quotes or not,
// with or without spaces around it; every line must have as many. Empty lines are passed over. With
// HeaderLine::automatic the first line is a header if no field of it looks like a number, be it one
// that is refused (nan, 3e39, 0x10). Throws Error{data} as "path:line:column: ...", also for lines
// of more than 8 MiB and more than 262144 columns. Memory: the table, and a line.
CsvTable read_csv(const std::string& path, const CsvFormat& format);

// The names in the first line; empty where it is no header. Throws Error{data} as read_csv().
std::vector<std::string> read_csv_header(const std::string& path, const CsvFormat& format);

}  // namespace dpt
