// A table of text for people. Columns are aligned, and left out where a terminal is too narrow.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace dpt {

// Widths are in characters. REQUIRES: cells have no control codes.
struct TextColumn {
  enum class Cut { never, end, front };  // which end of a cell may be cut to make it shorter

  std::vector<std::string> cells;  // the first one is the title
  bool right = false;              // aligned at the right
  int rank = 0;        // the column with the highest rank is left out first; 0 or less: never
  std::string name{};  // under which it is listed when it is left out
  Cut cut = Cut::never;
  std::string with{};  // the name of a column without which this one is left out; empty: none

  size_t width() const;
};

// Cuts cells and removes columns until lines have at most `width` characters, at least 40. Columns
// that are cut at the end come first, then those with a rank; columns that are cut at the front are
// cut as soon as that is enough. Returns the names of the removed columns.
std::vector<std::string> fit_columns(std::vector<TextColumn>& columns, size_t width);

std::string table_text(const std::vector<TextColumn>& columns);

// "not shown, see --csv: a, b and 3 more\n" in lines of this width; empty if there are no names.
std::string left_out_text(std::vector<std::string> names, size_t width);

// The text in at most `most` characters, ".." in place of what is cut.
std::string shortened(const std::string& text, size_t most);

}  // namespace dpt
