// Reads text tables of numbers and texts (RFC 4180, except for line breaks inside quotes).
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
  // What a word is that is none of them, and what to do, for the error message.
  std::string words_are = "in `class_names`; add it to the list, or correct it";
  // Columns of any text: a field counts as its index in CsvTable::texts. At most kMostTexts
  // different ones in a column.
  std::vector<std::string> text_columns{};
  // A field without a value is empty or one of kMissingWords. keep: it counts as NaN, except in
  // `targets`, where it is refused. drop: the line is left out.
  enum class Missing { refuse, keep, drop } missing = Missing::refuse;
  std::vector<std::string> targets{};  // columns to be predicted
  bool advise_keys = false;            // error messages may name keys of the data set `csv`

  static constexpr size_t kMostTexts = 1000;
  static constexpr std::string_view kMissingWords[] = {"NA",   "N/A",  "NaN", "nan",
                                                       "null", "NULL", "?"};
};

// Whether a field has no value.
bool is_missing_csv(std::string_view text);

// Sorts texts as classes or categories: numbers by value, before words by their bytes.
void sort_csv_texts(std::vector<std::string>& texts);

struct CsvTable {
  std::vector<std::string> names;  // of the columns; "0", "1", ... without a header line
  bool header = false;             // whether the first line has the names
  size_t rows = 0;
  std::vector<float> values;  // [rows, columns]
  // The texts of each column of text, in the order of their first lines; empty for other columns.
  std::vector<std::vector<std::string>> texts;
  std::vector<size_t> missing;  // fields without a value, of each column that is read
  size_t dropped = 0;           // lines that were left out
  size_t columns() const { return names.size(); }

  // The index of the column with this name, or else with this number, counted from 0 or, if
  // negative, from the end. Throws Error{data} that lists the names; `path` is the file's.
  size_t column(std::string_view name, const std::string& path) const;
};

// Reads a plain (uncompressed) file. Every field below the header must be one number unless
// `format` says otherwise, optionally quoted and surrounded by spaces; every line must have the
// same number of fields. Empty lines are
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
