// ColumnProfile: whether the fields of a text table's column are numbers, texts, dates or an index.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "data/readers/csv_fields.h"
#include "data/readers/csv_records.h"

namespace dpt {

class ColumnProfile {
 public:
  // decimal: '.' or ','. words: texts that stand for missing values, such as None, are words, and
  // only empty fields lack a value.
  explicit ColumnProfile(const std::string& name, char decimal = '.', bool words = false);

  void add(const CsvField& field);

  // The name and texts below are for messages: control characters in them are escaped.
  const std::string& name() const { return name_; }
  size_t rows() const { return rows_; }
  size_t missing() const { return missing_; }
  size_t missing_line() const { return missing_line_; }  // the first one; 0: there is none
  size_t missing_column() const { return missing_column_; }
  const std::string& missing_text() const { return missing_text_; }

  enum class Kind {
    empty,    // no field has a value
    numbers,  // all that have a value are numbers
    dates,    // all that have a value, and are not numbers, are dates
    texts,    // words, or few values of which some are words
    broken,   // numbers, but for a few fields; see why_broken()
  };
  Kind kind() const;
  bool whole() const { return whole_; }  // REQUIRES: numbers
  // Whole numbers, each larger than the one before, and none missing.
  bool rises() const { return rises_ && missing_ == 0 && words_in_all_ == 0; }
  // The number of different values; beyond kFew only that there are more.
  size_t different() const { return values_.size() + words_.size(); }
  static constexpr size_t kFew = 30, kMostWords = 1000;
  // Texts that are no numbers, and how often they occur; at most kMostWords + 1.
  struct Word {
    size_t count = 0, line = 0;  // the first one
  };
  const std::map<std::string, Word, std::less<>>& words() const { return words_; }
  // The first word in the file, and "'red' on line 2". REQUIRES: there is one.
  const std::string& first_text() const;
  std::string first_word() const;
  // What a broken column has, and on which lines: "holds numbers in 98 of 100 lines, but 'x4' on
  // line 7, 'x5' on line 9".
  std::string why_broken() const;
  std::string_view thousands() const { return points_.found(); }  // see ThousandsPoints
  bool has_separators() const { return separated_ > 0; }
  bool is_marked() const { return marked_ > 0; }  // some fields are marked_csv_number()
  // How to correct a broken column: "correct these fields", or how they are written plainly.
  std::string correction() const;
  // Whether few fields of a broken column must be corrected, or all in the same way.
  bool can_be_corrected() const;

 private:
  bool few_values() const;

  std::string name_;
  char decimal_;
  bool missing_words_;  // the argument `words`
  size_t rows_ = 0, missing_ = 0, missing_line_ = 0, missing_column_ = 0;
  std::string missing_text_;
  size_t words_in_all_ = 0, dates_ = 0, separated_ = 0, infinite_ = 0, marked_ = 0;
  ThousandsPoints points_;
  MarkedNumber mark_;  // the first one
  std::string marked_text_;
  bool whole_ = true, rises_ = true;
  double last_ = 0;
  std::set<double> values_;
  std::map<std::string, Word, std::less<>> words_;
};

}  // namespace dpt
