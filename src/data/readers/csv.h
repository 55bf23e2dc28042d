// Reads text tables of numbers and texts (RFC 4180).
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/readers/csv_fields.h"
#include "data/readers/csv_records.h"

namespace dpt {

struct CsvFormat {
  char delimiter = ',';
  char decimal = '.';  // the decimal mark; or ','
  enum class HeaderLine { automatic, yes, no } header = HeaderLine::automatic;
  // The columns to read; empty: all. Fields of other columns may hold any text, and count as 0.
  std::vector<size_t> columns{};
  // A column of any texts: a field counts as its index in CsvTable::texts. At most kMostTexts
  // different ones in a column beyond those that are known.
  struct TextColumn {
    size_t column = 0;
    std::vector<std::string> known{};  // have the indices 0, 1, ...; none of them is missing
    // How to go on if a text is not known, for the error message; empty: other texts are accepted.
    std::string refuses_others{};
    bool are_names = false;  // of samples: any number of texts, each as it is written
  };
  std::vector<TextColumn> text_columns{};
  // A field without a value: see is_missing_csv(). keep: it counts as NaN, except in `targets`,
  // where it is refused. drop: the line is left out.
  enum class Missing { refuse, keep, drop } missing = Missing::refuse;
  std::vector<size_t> targets{};  // columns to be predicted
  bool drop_targets = false;      // lines without a value in `targets` are left out, as by `drop`
  bool label_words = false;       // fields of `targets` may be label words, which count as 1 and 0
  // Above 0: the targets of the training set are numbers of so many classes, as errors then say.
  int64_t numbered_classes = 0;
  // Error messages may name keys of the data set `csv`; else the file is for a trained model, whose
  // format and columns are given.
  bool advise_keys = false;
  // Error messages may name what the training would need: the file is for a model that is trained
  // on a data set `csv`.
  bool advise_training = false;

  static constexpr size_t kMostTexts = 1000;
};

// The columns of a file.
struct CsvHead {
  // "0", "1", ... without a header line. If several columns have one name, the later ones get a
  // number, as in pandas: a, a.1, a.2.
  std::vector<std::string> names;
  bool header = false;  // whether the first line has the names
  std::string doubt;    // see CsvHeaderGuess
  // What seems to stand between the fields of a file that has one column; 0: nothing.
  char other_delimiter = '\0';

  size_t columns() const { return names.size(); }
  // The index of the column with this name, or else with this number, counted from 0 or, if
  // negative, from the end. Throws Error{data} that lists the names, or the columns if several have
  // this name in the file; `path` is the file's.
  size_t column(std::string_view name, const std::string& path) const;
  // The columns that have this name in the file.
  std::vector<size_t> columns_written(std::string_view name) const;
  // "; ';' seems to stand between its fields, ..."; empty: the file has the delimiter.
  std::string delimiter_hint() const;
  // The doubt with the key that ends it, for a warning; empty: there is no doubt.
  std::string header_warning() const;
  // Throws Error{data} that there is no column of this name.
  [[noreturn]] void refuse_name(std::string_view name, const std::string& path) const;
  // A text of a spec for which column() returns `index`: the name or, if others have it in the file
  // or if it has control characters, which a spec must not have, the number.
  std::string reference(size_t index) const;

  std::vector<std::string> written{};  // the names as in the file; empty: they are `names`
};

// Numbers the repetitions of names: a, b, a becomes a, b, a.1.
std::vector<std::string> unique_csv_names(std::vector<std::string> names);

struct CsvTable : CsvHead {
  size_t rows = 0;
  std::vector<double> values;  // [rows, columns]; finite in float32, or NaN for missing
  // The texts of each column of text, known ones first, then in the order of their first lines;
  // empty for other columns.
  std::vector<std::vector<std::string>> texts;
  std::vector<size_t> missing;  // fields without a value, of each column that is read
  // ThousandsPoints::found() for each column of numbers, if fields are not separated by commas.
  std::vector<std::string> thousands;
  size_t dropped = 0;      // lines that were left out
  size_t label_words = 0;  // fields of targets that are words for 1 and 0
};

// Reads a plain (uncompressed) file. Every field below the header must be one number unless
// `format` says otherwise, optionally quoted and surrounded by spaces; every line must have the
// same number of fields. Empty lines are skipped. Throws Error{data} as "path:line:column: ...",
// see CsvRecords. Memory: the table and one record.
CsvTable read_csv(const std::string& path, const CsvFormat& format);

// One record of a text table. Valid during the call that receives it.
struct CsvLine {
  size_t number = 0;  // of its first line in the file, from 1
  std::span<const CsvField> fields;
  bool header = false;  // the line names the columns
};
// Calls `line` for each record that is not empty, until it returns false. Fields may hold any text,
// and records may have different numbers of fields. Throws like read_csv().
void scan_csv(const std::string& path, const CsvFormat& format,
              const std::function<bool(const CsvLine&)>& line);

// The columns by the first lines of the file; none if it is empty. Throws like read_csv().
CsvHead read_csv_head(const std::string& path, const CsvFormat& format);

}  // namespace dpt
