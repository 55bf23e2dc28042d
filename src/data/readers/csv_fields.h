// What a field of a text table is: a number, a date, a text, or no value.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dpt {

// Whether a field has no value: it is empty, or one of the words that pandas reads as NaN, or "?".
bool is_missing_csv(std::string_view text);

// Whether the text is a number that is finite in float32; then `out` is its value. decimal: '.' or
// ','.
bool parse_csv_number(std::string_view text, double& out, char decimal = '.');

// Whether the text looks like a number rather than a word or a column's name: a number, even one
// that is refused (nan, 1e999, 0x10), or digits without letters (1,5 or 2026-01-31).
bool like_csv_number(std::string_view text);

// 1 for true and yes, 0 for false and no, in any capitals, as pandas writes booleans and people
// answer; none: the text is another.
std::optional<double> parse_csv_label(std::string_view text);

// Whether the text is a number that is not finite in float32: inf, 1e39.
bool is_infinite_csv(std::string_view text);

// Whether the text is a number with thousands separators or with another decimal mark than
// `decimal`: 1,234 or 1.234,5.
bool has_csv_separators(std::string_view text, char decimal);

// A number that is written with marks that are not read.
struct MarkedNumber {
  std::string_view what{};  // "percentages", "amounts of money", ...; empty: it is none
  std::string plain{};      // the number as it is read: "-5" for "(5)"
};
// Recognizes 5%, $5, 5 EUR, (5), 3 138, 3'138 and a minus sign U+2212, also combined.
MarkedNumber marked_csv_number(std::string_view text, char decimal);

// Finds columns in which the point may separate thousands: 7.291 beside 950.
class ThousandsPoints {
 public:
  void add(std::string_view number);
  // The first number with a point, if all of at least two such numbers have three digits behind it
  // and the others are whole numbers below 1000, of which there are some; else empty.
  std::string_view found() const;

 private:
  size_t pointed_ = 0, whole_ = 0;
  bool others_ = false;
  std::string first_;
};
// What a user should know about such a column, as a sentence without its end.
std::string thousands_warning(std::string_view column, std::string_view number);

// Whether the text is a date, or a date and a time: 2026-01-31, 31.1.2026, 1/31/26 12:30.
bool is_csv_date(std::string_view text);

// Sorts texts as classes or categories: numbers by value, before words by their bytes.
void sort_csv_texts(std::vector<std::string>& texts);

// Whether all of the texts are numbers.
bool all_csv_numbers(const std::vector<std::string>& texts);

// The different texts of a column. by_value: numbers of equal value (1, 1.0) are one text, of which
// the shortest spelling is kept.
class CsvTexts {
 public:
  static constexpr size_t kNone = static_cast<size_t>(-1);
  CsvTexts() = default;
  // With these texts, whose indices are their places in the list and whose spellings stay.
  explicit CsvTexts(const std::vector<std::string>& known, bool by_value = true);

  size_t find(std::string_view text) const;  // the text's index; kNone: it is none of them
  size_t add(std::string_view text);         // the same for a text that may be new
  // In the order in which they were added.
  const std::vector<std::string>& texts() const { return texts_; }
  size_t size() const { return texts_.size(); }

 private:
  std::vector<std::string> texts_;
  size_t known_ = 0;
  bool by_value_ = true;
  std::map<std::string, size_t, std::less<>> spellings_;  // of all texts
  std::map<std::string, size_t, std::less<>> values_;     // the index of each number's value
};

}  // namespace dpt
