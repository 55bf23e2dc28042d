#include "data/column_profile.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/count.h"
#include "base/one_line.h"
#include "data/readers/csv_fields.h"

namespace dpt {

ColumnProfile::ColumnProfile(const std::string& name, char decimal, bool words)
    : name_(one_line(name)), decimal_(decimal), missing_words_(words) {}

void ColumnProfile::add(const CsvField& field) {
  ++rows_;
  double value = 0;
  if (parse_csv_number(field.text, value, decimal_)) {
    if (decimal_ == '.') points_.add(field.text);
    whole_ = whole_ && std::trunc(value) == value;
    rises_ = rises_ && whole_ && (rows_ == 1 || value > last_);
    if ((value != last_ || values_.empty()) && values_.size() <= kFew) values_.insert(value);
    last_ = value;
    return;
  }
  if (missing_words_ ? field.text.empty() : is_missing_csv(field.text)) {
    if (missing_++ > 0) return;
    missing_line_ = field.line;
    missing_column_ = field.column;
    missing_text_ = one_line(field.text);
    return;
  }
  ++words_in_all_;
  dates_ += is_csv_date(field.text) ? 1 : 0;
  infinite_ += is_infinite_csv(field.text) ? 1 : 0;
  separated_ += has_csv_separators(field.text, decimal_) ? 1 : 0;
  if (MarkedNumber mark = marked_csv_number(field.text, decimal_);
      !mark.what.empty() && marked_++ == 0) {
    mark_ = std::move(mark);
    marked_text_ = one_line(field.text);
  }
  if (const auto known = words_.find(field.text); known != words_.end())
    ++known->second.count;
  else if (words_.size() <= kMostWords)
    words_.try_emplace(std::string(field.text), Word{.count = 1, .line = field.line});
}

ColumnProfile::Kind ColumnProfile::kind() const {
  const size_t given = rows_ - missing_, numbers = given - words_in_all_;
  if (given == 0) return Kind::empty;
  if (words_in_all_ == 0) return Kind::numbers;
  if (dates_ == words_in_all_ && dates_ >= numbers) return Kind::dates;
  const size_t odd = separated_ + infinite_ + marked_;  // numbers that cannot be used
  if (2 * (numbers + odd) <= given || (odd == 0 && few_values())) return Kind::texts;
  return Kind::broken;
}

// Whether the column looks like one of categories of which some are numbers: 2, 3, 4, 5more.
bool ColumnProfile::few_values() const {
  constexpr size_t kShare = 20;  // a category has at least this part of the lines
  constexpr size_t kWrong = 10;  // up to this part of the fields may be mistakes
  if (words_in_all_ * kWrong <= rows_ - missing_) return false;
  return different() <= kFew && std::ranges::all_of(words_, [&](const auto& word) {
           return word.second.count > 1 && word.second.count * kShare >= rows_;
         });
}

bool ColumnProfile::can_be_corrected() const {
  constexpr size_t kShare = 10;  // at most this part of the fields is wrong
  // A column of percentages alone is left out, as one of dates.
  if (separated_ + infinite_ == 0 && marked_ == rows_ - missing_) return false;
  return separated_ + infinite_ + marked_ > 0 || words_in_all_ * kShare <= rows_ - missing_;
}

const std::string& ColumnProfile::first_text() const {
  return std::ranges::min_element(words_, {}, [](const auto& word) { return word.second.line; })
      ->first;
}

std::string ColumnProfile::first_word() const {
  const std::string& text = first_text();
  return fmt::format("'{:.20}' on line {}", one_line(text), words_.at(text).line);
}

std::string ColumnProfile::why_broken() const {
  constexpr size_t kShown = 3;
  std::vector<std::pair<size_t, std::string_view>> lines;
  for (const auto& [text, word] : words_) lines.emplace_back(word.line, text);
  std::ranges::sort(lines);
  std::vector<std::string> shown;
  for (const auto& [line, text] : lines)
    if (shown.size() < kShown)
      shown.push_back(fmt::format("'{:.20}' on line {}", one_line(text), line));
  const size_t more = words_in_all_ - shown.size();
  if (separated_ > 0)
    return fmt::format("holds numbers with a decimal {} or with thousands separators: {}{}",
                       decimal_ == '.' ? "comma" : "point", fmt::join(shown, ", "),
                       more > 0 ? ", ..." : "");
  if (marked_ == words_in_all_ && 2 * marked_ > rows_ - missing_)
    return fmt::format("holds {}: {}{}", mark_.what, fmt::join(shown, ", "),
                       more > 0 ? ", ..." : "");
  return fmt::format("holds numbers in {} of {}, but {}{}", rows_ - missing_ - words_in_all_,
                     counted(rows_, "line"), fmt::join(shown, ", "),
                     more > 0 ? " and " + counted(more, "other field") : "");
}

std::string ColumnProfile::correction() const {
  if (marked_ == 0 || separated_ > 0) return "correct these fields";
  const std::string plain =
      fmt::format("'{:.20}' is read as a number if it is written {}", marked_text_, mark_.plain);
  return "write plain numbers (" + plain + ")";
}

}  // namespace dpt
