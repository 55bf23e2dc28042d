#include "data/readers/csv_header.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <span>
#include <vector>

#include <fmt/format.h>

#include "base/count.h"
#include "base/fail.h"
#include "base/one_line.h"
#include "base/units.h"
#include "data/readers/csv_fields.h"
#include "data/readers/csv_records.h"

namespace dpt {
namespace {

// A column in the first lines: the field of the first one, and what is below it.
struct Column {
  enum class Kind { text, whole, other_number, missing } kind = Kind::missing;
  std::string first;
  size_t numbers = 0, wholes = 0, words = 0;
  double largest = 0;        // of the numbers' absolute values
  double value = 0;          // of the first field, if that is a number
  double low = 0, high = 0;  // of the numbers below
  bool recurs = false;       // the first text occurs again
  bool repeats = false;      // some text below occurs twice
  std::set<std::string, std::less<>> seen{};

  bool is_number() const { return kind == Kind::whole || kind == Kind::other_number; }
  bool above_numbers() const { return kind == Kind::text && numbers > 0 && words == 0; }
  bool above_decimals() const {
    return kind == Kind::whole && numbers > 0 && wholes == 0 && words == 0;
  }
  // Whether the first number is as far from those below as these are from each other, or farther.
  bool far_outside() const {
    return numbers > 0 && words == 0 && (value < low || value > high) &&
           std::max(low - value, value - high) >= high - low;
  }
  bool above_other_texts() const { return kind == Kind::text && words > 0 && repeats && !recurs; }
};

bool is_whole(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

// Whether numbers rise, and whether from one to the next by the same step, up or down.
struct Order {
  bool rises = true, even = true;
};
Order order_of(std::span<const double> x) {
  constexpr double kRounding = 1e-6;  // of the step: 0.1, 0.2, 0.3 as doubles
  Order out;
  for (size_t i = 1; i < x.size(); ++i) {
    const double step = x[1] - x[0];
    out.rises = out.rises && x[i] > x[i - 1];
    out.even =
        out.even && step != 0 && std::abs(x[i] - x[i - 1] - step) <= kRounding * std::abs(step);
  }
  return out;
}

class FirstLines {
 public:
  FirstLines(const std::string& path, char delimiter, char decimal)
      : path_(path), decimal_(decimal) {
    constexpr size_t kLines = 100, kBytes = kMiB;
    CsvRecords records(path, delimiter);
    std::vector<CsvField> fields;
    if (!records.next(fields)) return;
    line_ = records.line();
    for (const CsvField& f : fields) add_first(f.text);
    size_t bytes = 0;
    while (lines_ < kLines && bytes < kBytes && records.next(fields)) {
      if (repeats_names(fields)) continue;
      for (size_t i = 0; i < std::min(fields.size(), columns_.size()); ++i)
        add(columns_[i], fields[i].text), bytes += fields[i].text.size();
      add_order(fields);
      ++lines_;
    }
    for (Column& c : columns_)
      if (is_text_above(c)) c.kind = Column::Kind::text, c.recurs = false;
  }

  // A title that a spreadsheet wrote above the table. A header has two names at least.
  void refuse_title() const {
    if (columns_.empty() || columns_[0].kind != Column::Kind::text) return;
    const std::span<const Column> others = std::span(columns_).subspan(1);
    const bool alone = std::ranges::all_of(others, [](const Column& c) { return c.first.empty(); });
    const auto used =
        std::ranges::count_if(others, [](const Column& c) { return c.numbers + c.words > 0; });
    if (alone && used > 1)
      fail(Fault::data,
           "{}:{}:1: this line looks like a title, '{:.40}', since its other fields are empty; "
           "delete the lines above the names of the columns",
           path_, line_, columns_[0].first);
  }

  CsvHeaderGuess guess() const {
    const size_t texts = count(&Column::kind, Column::Kind::text);
    if (wholes() + other_numbers() > 0) return guess_with_numbers();
    if (texts == 0) return {};
    if (std::ranges::any_of(columns_, &Column::above_numbers)) return {.header = true};
    const auto recurring = std::ranges::count_if(columns_, &Column::recurs);
    if (recurring == 0) return {.header = true};
    if (static_cast<size_t>(recurring) * 2 < texts)
      return names(fmt::format("'{:.40}' occurs again in its column", one_line(recurring_text())));
    return sample(fmt::format("all lines hold texts, and '{:.40}' occurs again in its column",
                              one_line(recurring_text())));
  }

 private:
  void add_first(std::string_view text) {
    using Kind = Column::Kind;
    double value = 0;
    if (!parse_csv_number(text, value, decimal_)) value = 0;
    columns_.push_back({.kind = is_whole(text)          ? Kind::whole
                                : like_csv_number(text) ? Kind::other_number
                                : is_missing_csv(text)  ? Kind::missing
                                                        : Kind::text,
                        .first = std::string(text),
                        .value = value});
  }

  // Digits that are no number, such as 2024-01, are a text if all below are numbers.
  bool is_text_above(const Column& c) const {
    double ignored = 0;
    const bool number = parse_csv_number(c.first, ignored, decimal_) || is_missing_csv(c.first) ||
                        is_infinite_csv(c.first) || has_csv_separators(c.first, decimal_) ||
                        has_csv_separators(c.first, decimal_ == '.' ? ',' : '.');
    return c.kind == Column::Kind::other_number && !number && c.numbers > 0 && c.words == 0 &&
           c.first.find_first_of("xX;|\t") == std::string::npos;  // 0x10; another delimiter
  }

  // Whether the line repeats the first line, and that line is a header: text above numbers.
  bool repeats_names(std::span<const CsvField> fields) const {
    return std::ranges::any_of(columns_, &Column::above_numbers) &&
           std::ranges::equal(fields, columns_, {}, &CsvField::text, &Column::first);
  }

  void add_order(std::span<const CsvField> fields) {
    row_.clear();
    double value = 0;
    for (const CsvField& f : fields)
      if (parse_csv_number(f.text, value, decimal_)) row_.push_back(value);
    if (row_.size() < 2) return;
    const Order order = order_of(row_);
    rising_ += order.rises ? 1 : 0;
    even_ += order.even ? 1 : 0;
  }

  void add(Column& c, std::string_view text) const {
    double value = 0;
    if (is_missing_csv(text)) return;
    if (parse_csv_number(text, value, decimal_)) {
      ++c.numbers;
      c.wholes += is_whole(text) ? 1 : 0;
      c.low = c.numbers == 1 ? value : std::min(c.low, value);
      c.high = c.numbers == 1 ? value : std::max(c.high, value);
      c.recurs = c.recurs || (c.is_number() && value == c.value);
      c.largest = std::max(c.largest, std::abs(value));
      return;
    }
    ++c.words;
    c.recurs = c.recurs || text == c.first;
    c.repeats = !c.seen.emplace(text).second || c.repeats;
  }

  CsvHeaderGuess guess_with_numbers() const {
    const auto texts = std::ranges::count_if(columns_, &Column::above_numbers) +
                       std::ranges::count_if(columns_, &Column::above_other_texts);
    const auto evidence = texts + (texts > 0 && wholes() > 0 && far_above() ? 1 : 0);
    const bool whole = other_numbers() == 0;
    constexpr size_t kMany = 8, kSome = 3;
    if ((evidence >= 2 && whole) || above_index()) return {.header = true};
    if (evidence >= 2) return names("some of its fields are numbers");
    if (!whole || !different())
      return evidence > 0 ? sample("one field looks like a name") : guess_numbers_alone();
    if (own_numbers() && (evidence == 1 || wholes() >= kMany)) return {.header = true};
    if (above_decimals() && wholes() >= 2 && lines_ >= 2)
      return own_numbers() && wholes() >= kSome
                 ? CsvHeaderGuess{.header = true}
                 : names("its fields are whole numbers, and those below have decimals");
    if (evidence == 1 && wholes() >= kSome && order_of(first_numbers()).even)
      return names("its other fields are numbers");
    if (evidence == 1) return sample("one field looks like a name");
    if (!own_numbers() || wholes() < kSome) return guess_numbers_alone();
    return std::ranges::any_of(columns_, &Column::above_decimals)
               ? names("its fields are the numbers 0, 1, 2, ...")
               : sample("its fields are the numbers 0, 1, 2, ...");
  }

  // Guesses for a first line that holds only numbers: whether it differs from the lines below as
  // years, wavelengths or numbered columns do.
  CsvHeaderGuess guess_numbers_alone() const {
    constexpr size_t kSome = 3, kMany = 5, kFewLines = 5;
    constexpr size_t kRare = 20;  // at most this part of the lines below is like the first
    const std::vector<double> x = first_numbers();
    if (x.size() < 2 || count(&Column::kind, Column::Kind::text) > 0 || lines_ < 2) return {};
    const Order order = order_of(x);
    const bool rises = order.rises && rising_ * kRare <= lines_;
    const bool even = order.even && even_ * kRare <= lines_;
    const bool far = std::ranges::all_of(columns_, [](const Column& c) {
      return c.kind == Column::Kind::missing || c.far_outside();
    });
    if (far && order.rises && 2 * rising_ <= lines_ && x.size() >= kSome && other_numbers() == 0 &&
        lines_ >= kFewLines)
      return names("its fields are numbers");
    if (far && lines_ >= kFewLines) return sample("its numbers lie far outside of their columns");
    const bool new_ones = std::ranges::none_of(columns_, &Column::recurs);
    if (even && (x.size() > kSome || (x.size() == kSome && new_ones)))
      return sample("its numbers are evenly spaced, and those below are not");
    if (rises && x.size() >= kMany)
      return sample("its numbers rise from column to column, and those below do not");
    return {};
  }
  std::vector<double> first_numbers() const {
    std::vector<double> out;
    for (const Column& c : columns_)
      if (c.is_number()) out.push_back(c.value);
    return out;
  }

  template <class M, class V>
  size_t count(M member, V value) const {
    return static_cast<size_t>(std::ranges::count(columns_, value, member));
  }
  size_t wholes() const { return count(&Column::kind, Column::Kind::whole); }
  size_t other_numbers() const { return count(&Column::kind, Column::Kind::other_number); }

  // Whether the whole numbers of the first line are the columns' own, from 0.
  bool own_numbers() const {
    for (size_t i = 0; i < columns_.size(); ++i)
      if (columns_[i].kind == Column::Kind::whole && columns_[i].first != std::to_string(i))
        return false;
    return true;
  }
  // Whether the first line is that of pandas' to_csv(): no name above the index, then 0, 1, 2, ...
  bool above_index() const {
    if (columns_.size() < 3 || !columns_[0].first.empty() || columns_[0].numbers == 0) return false;
    for (size_t i = 1; i < columns_.size(); ++i)
      if (columns_[i].first != std::to_string(i - 1)) return false;
    return true;
  }
  bool different() const {
    std::set<std::string_view> seen;
    return std::ranges::all_of(columns_, [&](const Column& c) {
      return c.kind != Column::Kind::whole || seen.insert(c.first).second;
    });
  }
  bool above_decimals() const {
    return std::ranges::all_of(columns_, [](const Column& c) {
      return c.kind != Column::Kind::whole || c.above_decimals();
    });
  }
  // Whether all whole numbers are far above those below them, as years are.
  bool far_above() const {
    return std::ranges::all_of(columns_, [](const Column& c) {
      double value = 0;
      return c.kind != Column::Kind::whole ||
             (c.numbers > 0 && parse_csv_number(c.first, value) && value > 2 * c.largest);
    });
  }
  std::string_view recurring_text() const {
    return std::ranges::find_if(columns_, &Column::recurs)->first;
  }

  CsvHeaderGuess names(const std::string& but) const {
    return {.header = true,
            .doubt = fmt::format("line {} of {} is taken for the names of the columns, although {}",
                                 line_, path_, but)};
  }
  CsvHeaderGuess sample(const std::string& but) const {
    return {.header = false,
            .doubt =
                fmt::format("line {} of {} is taken for a sample, although {}", line_, path_, but)};
  }

  const std::string& path_;
  char decimal_;
  std::vector<Column> columns_;
  size_t line_ = 0, lines_ = 0;   // the first line's number; lines below it that were read
  size_t rising_ = 0, even_ = 0;  // lines below whose numbers rise, or have equal steps
  std::vector<double> row_{};     // scratch
};

}  // namespace

CsvHeaderGuess guess_csv_header(const std::string& path, char delimiter, char decimal) {
  const FirstLines lines(path, delimiter, decimal);
  lines.refuse_title();
  return lines.guess();
}

void refuse_repeated_header(const std::string& path, size_t line, std::span<const CsvField> fields,
                            std::span<const std::string> names) {
  if (std::ranges::equal(fields, names, {}, &CsvField::text))
    fail(Fault::data,
         "{}:{}:1: this line repeats the column names, which happens when files are joined; delete "
         "it",
         path, line);
}

void refuse_csv_line(const std::string& path, size_t line, std::span<const CsvField> fields,
                     size_t columns) {
  const bool comment = !fields.empty() && fields[0].text.starts_with('#');
  fail(Fault::data, "{}:{}:1: {}, where the first line has {}; {}", path, line,
       counted(fields.size(), "field"), columns,
       comment ? "comments are not read: delete the lines that begin with #"
               : "correct the line, or delete it");
}

}  // namespace dpt
