#include "data/readers/csv_fields.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>

#include <fmt/format.h>

#include "base/lower_case.h"

namespace dpt {
namespace {

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || static_cast<signed char>(c) < 0;
}

// pandas' default na_values, and the mark of the UCI repository.
constexpr std::string_view kMissing[] = {
    "#N/A", "#N/A N/A", "#NA",  "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>",
    "N/A",  "NA",       "NULL", "NaN",     "None",     "n/a",  "nan",  "null",   "?"};

std::string_view unsigned_part(std::string_view text) {
  return text.starts_with('+') || text.starts_with('-') ? text.substr(1) : text;
}

// The number of digits at the beginning.
size_t digits_of(std::string_view text) {
  return std::min(text.size(),
                  static_cast<size_t>(std::ranges::find_if_not(text, is_digit) - text.begin()));
}

// Numbers of equal value have one key; a text that is no number, or whose digits exceed a double's,
// has none.
std::string value_key(std::string_view text) {
  constexpr int64_t kExactDigits = 15;
  double value = 0;
  if (std::ranges::count_if(text, is_digit) > kExactDigits || !parse_csv_number(text, value))
    return "";
  return fmt::format("{}", value == 0 ? 0 : value);  // no negative zero
}

}  // namespace

bool is_missing_csv(std::string_view text) {
  constexpr size_t kLongest = 8;
  return text.empty() ||
         (text.size() <= kLongest && std::ranges::find(kMissing, text) != std::end(kMissing));
}

bool parse_csv_number(std::string_view text, double& out, char decimal) {
  constexpr size_t kLongest = 64;
  constexpr double kMost = 3.4028235677973366e38;  // the smallest that float32 rounds to infinity
  if (decimal != '.') {
    std::array<char, kLongest> pointed;
    if (text.size() > kLongest || text.find('.') != text.npos) return false;
    std::ranges::replace_copy(text, pointed.begin(), decimal, '.');
    return parse_csv_number({pointed.data(), text.size()}, out);
  }
  // Programs pad numbers in quotes.
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  const char *begin = text.data(), *const end = begin + text.size();
  if (begin != end && *begin == '+' && ++begin != end && *begin == '-') return false;
  const auto [at, error] = std::from_chars(begin, end, out);
  if (at != end || begin == end) return false;
  if (error == std::errc()) return std::abs(out) < kMost;
  const bool tiny = text.find("e-") != text.npos || text.find("E-") != text.npos;
  out = 0;  // if smaller than any double
  return tiny && error == std::errc::result_out_of_range;
}

std::optional<double> parse_csv_label(std::string_view text) {
  constexpr size_t kLongest = 5;
  if (text.size() > kLongest) return {};
  const std::string lower = lower_case(std::string(text));
  if (lower == "true" || lower == "yes") return 1;
  if (lower == "false" || lower == "no") return 0;
  return {};
}

bool like_csv_number(std::string_view text) {
  if (std::ranges::any_of(text, is_digit) && std::ranges::none_of(text, is_letter)) return true;
  text = unsigned_part(text);
  if (text.empty()) return false;
  double value = 0;
  uint64_t hex = 0;
  const char *const begin = text.data(), *const end = begin + text.size();
  if (std::from_chars(begin, end, value).ptr == end) return true;
  return text.size() > 2 && (text.starts_with("0x") || text.starts_with("0X")) &&
         std::from_chars(begin + 2, end, hex, 16).ptr == end;
}

bool is_infinite_csv(std::string_view text) {
  text = unsigned_part(text);
  double value = 0;
  const char* const end = text.data() + text.size();
  return !text.empty() && std::from_chars(text.data(), end, value).ptr == end &&
         !parse_csv_number(text, value) && !is_missing_csv(text);
}

bool has_csv_separators(std::string_view text, char decimal) {
  const char other = decimal == '.' ? ',' : '.';
  text = unsigned_part(text);
  size_t digits = digits_of(text), separators = 0;
  if (digits == 0) return false;
  for (text.remove_prefix(digits); !text.empty() && text[0] == other; ++separators) {
    digits = digits_of(text.substr(1));
    if (digits == 0) return false;
    text.remove_prefix(1 + digits);
  }
  if (separators == 0) return false;
  return text.empty() || (text[0] == decimal && digits_of(text.substr(1)) == text.size() - 1);
}

namespace {

// Removes the text from the beginning or the end, with a space beside it.
bool strip(std::string_view& text, std::string_view mark) {
  if (text.starts_with(mark))
    text.remove_prefix(mark.size());
  else if (text.ends_with(mark))
    text.remove_suffix(mark.size());
  else
    return false;
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  while (text.ends_with("\u00a0")) text.remove_suffix(2);
  return true;
}

// "3 138" as "3138" if the text is digits in groups of three with one kind of space or an
// apostrophe between them; else the text.
std::string without_groups(std::string_view text) {
  const size_t first = digits_of(text);
  if (first == 0 || first > 3 || text[0] == '0') return std::string(text);
  for (const std::string_view mark : {" ", "'", "\u2019", "\u00a0", "\u202f", "\u2009"}) {
    std::string out(text.substr(0, first));
    std::string_view rest = text.substr(first);
    while (rest.starts_with(mark) && digits_of(rest.substr(mark.size())) == 3) {
      out += rest.substr(mark.size(), 3);
      rest.remove_prefix(mark.size() + 3);
    }
    if (out.size() > first) return out.append(rest);
  }
  return std::string(text);
}

// Whether all marks of a number that has_csv_separators() are followed by groups of three digits,
// as those of 1,234,567.8 are, and those of 1,5 and 0,123 are not.
bool separates_thousands(std::string_view number, char mark) {
  size_t digits = digits_of(number);
  bool groups = digits <= 3 && number[0] != '0';
  for (number.remove_prefix(digits); number.starts_with(mark); number.remove_prefix(1 + digits)) {
    digits = digits_of(number.substr(1));
    groups = groups && digits == 3;
  }
  return groups;
}

}  // namespace

MarkedNumber marked_csv_number(std::string_view text, char decimal) {
  constexpr size_t kLongest = 40;
  constexpr std::string_view kMoney[] = {"$",   "\u20ac", "\u00a3", "\u00a5", "EUR",
                                         "USD", "GBP",    "CHF",    "JPY"};
  if (text.empty() || text.size() > kLongest || std::ranges::none_of(text, is_digit)) return {};
  MarkedNumber out;
  bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  const auto is = [&](std::string_view what) {
    if (out.what.empty()) out.what = what;
  };
  for (bool more = true; more;) {
    more = false;
    for (const std::string_view money : kMoney)
      if (strip(text, money)) is("amounts of money"), more = true;
    if (text.ends_with('%') && strip(text, "%")) is("percentages"), more = true;
    if (text.starts_with('(') && text.ends_with(')')) {
      text.remove_suffix(1);
      strip(text, "(");
      is("negative numbers in parentheses");
      negative = more = true;
    }
    if (text.starts_with("\u2212")) {
      strip(text, "\u2212");
      is("numbers with the minus sign U+2212");
      negative = more = true;
    }
  }
  const bool minus = text.starts_with('-');
  if (minus) text.remove_prefix(1);
  std::string digits = without_groups(text);
  if (digits != text) is("numbers with spaces or apostrophes between digits");
  if (out.what.empty()) return {};
  if (has_csv_separators(digits, decimal)) {
    const char other = decimal == '.' ? ',' : '.';
    if (separates_thousands(digits, other))
      std::erase(digits, other);
    else  // the other decimal mark
      std::ranges::replace(digits, other, decimal);
  }
  double value = 0;
  if (!parse_csv_number(digits, value, decimal) || !is_digit(digits.empty() ? ' ' : digits[0]))
    return {};
  out.plain = (negative || minus ? "-" : "") + digits;
  return out;
}

void ThousandsPoints::add(std::string_view number) {
  if (others_) return;
  constexpr size_t kGroup = 3;
  const std::string_view text = unsigned_part(number);
  const size_t digits = digits_of(text);
  if (digits == 0 || digits > kGroup) {
    others_ = true;
  } else if (digits == text.size()) {
    ++whole_;
  } else if (text[0] != '0' && text[digits] == '.' && text.size() == digits + 1 + kGroup &&
             digits_of(text.substr(digits + 1)) == kGroup) {
    if (pointed_++ == 0) first_ = number;
  } else {
    others_ = true;
  }
}

std::string_view ThousandsPoints::found() const {
  return !others_ && pointed_ >= 2 && whole_ > 0 ? first_ : std::string_view();
}

std::string thousands_warning(std::string_view column, std::string_view number) {
  return fmt::format(
      "every number with a point in column '{:.40}' has three digits behind it, such as {}, and "
      "the "
      "others are whole numbers below 1000; if the point separates thousands, remove it",
      column, number);
}

bool is_csv_date(std::string_view text) {
  const std::string_view day = text.substr(0, text.find_first_of(" T"));
  const std::string_view time = text.substr(day.size());
  size_t at = digits_of(day);
  if (at == 0 || at > 4 || at == day.size()) return false;
  const char separator = day[at];
  if (separator != '-' && separator != '/' && separator != '.') return false;
  const size_t first = at;
  const std::string_view rest = day.substr(first + 1);
  const size_t month = digits_of(rest);
  if (month == 0 || month > 2 || month == rest.size() || rest[month] != separator) return false;
  const size_t last = rest.size() - month - 1;
  if (digits_of(rest.substr(month + 1)) != last || last == 0 || last > 4) return false;
  const bool has_year = (first == 4) != (last == 4);
  if (!has_year && (first > 2 || last > 2 || separator == '.')) return false;  // 1.2.3: a version
  return time.empty() || (time.size() > 2 && is_digit(time[1]) && time.find(':') != time.npos);
}

void sort_csv_texts(std::vector<std::string>& texts) {
  std::ranges::sort(texts, [](const std::string& a, const std::string& b) {
    double x = 0, y = 0;
    const bool p = parse_csv_number(a, x), q = parse_csv_number(b, y);
    if (p && q && x != y) return x < y;
    return p != q ? p : a < b;
  });
}

bool all_csv_numbers(const std::vector<std::string>& texts) {
  double ignored = 0;
  return std::ranges::all_of(texts,
                             [&](const std::string& t) { return parse_csv_number(t, ignored); });
}

CsvTexts::CsvTexts(const std::vector<std::string>& known, bool by_value)
    : texts_(known), known_(known.size()), by_value_(by_value) {
  for (size_t i = 0; i < known.size(); ++i) {
    spellings_.try_emplace(known[i], i);
    if (std::string key = value_key(known[i]); !key.empty()) values_.try_emplace(std::move(key), i);
  }
}

size_t CsvTexts::find(std::string_view text) const {
  if (const auto at = spellings_.find(text); at != spellings_.end()) return at->second;
  if (!by_value_) return kNone;
  const auto at = values_.find(value_key(text));
  return at == values_.end() ? kNone : at->second;
}

size_t CsvTexts::add(std::string_view text) {
  if (const auto at = spellings_.find(text); at != spellings_.end()) return at->second;
  size_t index = texts_.size();
  if (std::string key = by_value_ ? value_key(text) : ""; !key.empty())
    index = values_.try_emplace(std::move(key), index).first->second;
  spellings_.emplace(text, index);
  if (index == texts_.size()) {
    texts_.emplace_back(text);
  } else if (std::string& kept = texts_[index];
             index >= known_ &&
             std::pair(text.size(), text) < std::pair(kept.size(), std::string_view(kept))) {
    kept = text;
  }
  return index;
}

}  // namespace dpt
