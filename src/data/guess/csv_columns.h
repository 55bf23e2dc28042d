// What the columns of a text table hold, and which are inputs, for a spec that is guessed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "data/column_profile.h"
#include "data/guess/guess.h"
#include "data/readers/csv.h"

namespace dpt {

inline constexpr size_t kMostCsvClasses = 1000;

struct ScannedColumns {
  CsvHead head;
  std::vector<ColumnProfile> profiles;
  std::vector<size_t> targets, exclude, categories;  // the last two: by the query
  CsvTexts target_texts;  // of the first target, if there is one only; up to kMostCsvClasses + 1
  size_t rows = 0, dropped = 0;  // lines that are used, and that are left out for want of a value
  char decimal = '.';
  bool missing_is_class = false;  // see GuessQuery
  // The number of the first line if that is a sample by its fields alone, and may be a header; else
  // 0.
  size_t doubtful_line = 0;

  // What to do about a column whose only text is in a first line that may be a header.
  std::string advice(const ColumnProfile& c, const std::string& otherwise) const;
  bool is_category(size_t column) const {
    return std::ranges::find(categories, column) != categories.end();
  }
  bool is_target(size_t column) const {
    return std::ranges::find(targets, column) != targets.end();
  }
};

// Profiles the columns by the lines that training keeps. Throws Error{data} if these are fewer than
// two, and Error{spec} if an option names a wrong column.
ScannedColumns scan_columns(const std::string& path, const CsvFormat& format,
                            const GuessQuery& query);

// For each column why it is no input; empty for inputs, for targets, and for columns of numbers
// that check_input() refuses.
std::vector<std::string> reasons_left_out(const ScannedColumns& t);

// How many lines lack a value in a target, and how many in any column that is used.
struct LackingLines {
  size_t targets = 0, all = 0;
};
LackingLines count_lacking(const ScannedColumns& t, const std::string& path,
                           const CsvFormat& format);

// Throws Error{data} if a column of numbers has other texts, which must be corrected.
void check_input(const ScannedColumns& t, size_t column, const std::string& path);

}  // namespace dpt
