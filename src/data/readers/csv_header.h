// Whether the first line of a text table names its columns.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "data/readers/csv_records.h"

namespace dpt {

struct CsvHeaderGuess {
  bool header = false;
  // Why the answer is in doubt: "line 1 of t.csv is taken for a sample, although ...". Empty: it is
  // not.
  std::string doubt;
};

// Decides by the first lines of the file: a header's fields differ in kind from the columns below,
// as names above numbers do. A field that is missing says nothing.
//
// - A first line without anything like a number is a header, unless most of its texts occur in
//   their columns again.
// - One with numbers is a header if they are whole and two texts in it stand above numbers or above
//   other, repeated texts; one is enough if the numbers are the columns' own, 0, 1, 2, ..., or far
//   above those below them, as years are.
// - An empty field and then 0, 1, 2, ... are a header, as pandas writes it above an index column.
// - One of whole numbers alone is a header if these are 0, 1, 2, ... for at least 8 columns, if the
//   numbers below all have decimals, or if they rise over at least 3 columns and each is far
//   outside of its column, which is in doubt.
// - Other numbers are a sample in doubt if they are evenly spaced, rise over many columns, or lie
//   far outside of their columns, and those below are not like them.
// Throws Error{data} if the first line looks like a title: its first field alone is not empty.
CsvHeaderGuess guess_csv_header(const std::string& path, char delimiter, char decimal);

// Throws Error{data} if a line below the header has the names of the columns again.
void refuse_repeated_header(const std::string& path, size_t line, std::span<const CsvField> fields,
                            std::span<const std::string> names);

// Throws Error{data} that a line has another number of fields than the first one, with the likely
// cause: a comment.
[[noreturn]] void refuse_csv_line(const std::string& path, size_t line,
                                  std::span<const CsvField> fields, size_t columns);

}  // namespace dpt
