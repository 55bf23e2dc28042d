#include "data/column_encoding.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "base/fail.h"
#include "base/machine.h"
#include "base/units.h"
#include "data/tables.h"

namespace dpt {
namespace {

class ColumnFit {
 public:
  // rows: empty: all
  ColumnFit(const CsvTable& table, size_t column, std::span<const uint32_t> rows)
      : table_(table), column_(column), rows_(rows.empty() ? table.rows : rows.size()) {
    values_.reserve(rows_);
    for (size_t i = 0; i < rows_; ++i) {
      const size_t row = rows.empty() ? i : rows[i];
      const double x = table.values[row * table.columns() + column];
      if (!std::isnan(x)) values_.push_back(x);
    }
  }

  std::vector<std::string> categories() const {
    std::vector<bool> seen(table_.texts[column_].size());
    for (const double index : values_) seen[static_cast<size_t>(index)] = true;
    std::vector<std::string> out;
    for (size_t i = 0; i < seen.size(); ++i)
      if (seen[i]) out.push_back(table_.texts[column_][i]);
    sort_csv_texts(out);
    return out;
  }

  // How many fields have values.
  size_t count() const { return values_.size(); }
  double mean() const {
    double sum = 0;
    for (const double x : values_) sum += x;
    return sum / static_cast<double>(count());
  }
  // The population's, where missing fields count as the mean; 1 if all are equal.
  double std(double mean) const {
    double sum = 0, largest = 0;
    for (const double x : values_) {
      const double d = x - mean;
      sum += d * d;
      largest = std::max(largest, std::abs(x));
    }
    const double out = std::sqrt(sum / static_cast<double>(rows_));
    constexpr double kRounding = 1e-12;  // of the sum of equal numbers, relative
    return out > kRounding * largest ? out : 1;
  }

 private:
  const CsvTable& table_;
  size_t column_;
  size_t rows_;
  std::vector<double> values_;  // those that are not missing
};

bool is_text(const CsvTable& table, size_t column) {
  return column < table.texts.size() && !table.texts[column].empty();
}

// The category of each text of a column; -1: none.
std::vector<int64_t> categories_of(const std::vector<std::string>& texts,
                                   const std::vector<std::string>& categories) {
  std::vector<int64_t> out;
  for (const std::string& text : texts) {
    const auto found = std::ranges::find(categories, text);
    out.push_back(found == categories.end() ? -1 : found - categories.begin());
  }
  return out;
}

}  // namespace

std::vector<ColumnEncoding> fit_encodings(const CsvTable& table, std::span<const size_t> inputs,
                                          std::span<const uint32_t> rows,
                                          const EncodingQuery& query, const std::string& path) {
  std::vector<ColumnEncoding> out;
  for (const size_t column : inputs) {
    ColumnEncoding& e = out.emplace_back(ColumnEncoding{.fills = query.fill_missing});
    const bool text = is_text(table, column);
    if (!text && !query.fill_missing && !query.standardize) continue;  // it is used as it is
    const ColumnFit fit(table, column, rows);
    if (fit.count() == 0)
      fail(Fault::data,
           "{}: column '{:.40}' has no value in the lines that are trained on; leave it out with "
           "`exclude`",
           path, table.names[column]);
    if (text) {
      e.categories = fit.categories();
    } else {
      const double mean = fit.mean();
      if (query.fill_missing) e.fill = mean;
      if (query.standardize) e.mean = mean, e.std = fit.std(mean);
    }
  }
  return out;
}

std::optional<double> number_losing_digits(const CsvTable& table, size_t column) {
  constexpr double kNotable = 1e-3;  // of the standard deviation
  // Most columns have a wide spread in their first rows, and further rows cannot narrow it.
  constexpr size_t kFirst = 1000;
  constexpr double kWide = 1.0 / 1024;
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (size_t r = 0; r < std::min(kFirst, table.rows); ++r) {
    const double x = table.values[r * table.columns() + column];
    if (std::isnan(x)) continue;
    low = std::min(low, x), high = std::max(high, x);
    if (high - low > kWide * std::max(std::abs(low), std::abs(high))) return {};
  }
  const ColumnFit fit(table, column, {});
  if (fit.count() < 2) return {};
  const double least = kNotable * fit.std(fit.mean());
  for (size_t r = 0; r < table.rows; ++r) {
    const double x = table.values[r * table.columns() + column];
    if (std::abs(x - static_cast<double>(static_cast<float>(x))) > least) return x;
  }
  return {};
}

bool changes_any(std::span<const ColumnEncoding> encodings) {
  return std::ranges::any_of(encodings,
                             [](const ColumnEncoding& e) { return e != ColumnEncoding{}; });
}

EncodedInputs encode(CsvTable& table, std::span<const size_t> columns,
                     std::span<const ColumnEncoding> encodings) {
  const ColumnEncoding as_is;
  const auto encoding = [&](size_t i) -> const ColumnEncoding& {
    return encodings.empty() ? as_is : encodings[i];
  };
  size_t width = 0;
  std::vector<std::vector<int64_t>> categories(columns.size());
  for (size_t i = 0; i < columns.size(); ++i) {
    const std::vector<std::string>& of = encoding(i).categories;
    width += of.empty() ? 1 : of.size();
    if (!of.empty()) categories[i] = categories_of(table.texts[columns[i]], of);
  }
  NewTable out({DType::f32, {static_cast<int64_t>(table.rows), static_cast<int64_t>(width)}});
  EncodedInputs result;
  float* to = out.as<float>().data();
  double* kept = table.values.data();
  constexpr std::ptrdiff_t kReleased = kMiB / sizeof *kept;  // at once
  for (size_t r = 0; r < table.rows; ++r) {
    double* const row = table.values.data() + r * table.columns();
    if (row - kept > kReleased) {
      release_pages(std::as_writable_bytes(std::span(kept, row)));
      kept = row;
    }
    for (size_t i = 0; i < columns.size(); ++i) {
      const ColumnEncoding& e = encoding(i);
      const double x = row[columns[i]];
      const bool missing = std::isnan(x);
      result.filled += missing ? 1 : 0;
      if (e.categories.empty()) {
        *to++ = static_cast<float>(((missing ? e.fill : x) - e.mean) / e.std);
        continue;
      }
      result.no_category += missing ? 1 : 0;
      std::fill_n(to, e.categories.size(), 0.0F);
      const int64_t category = missing ? -1 : categories[i][static_cast<size_t>(x)];
      if (category >= 0) {
        to[category] = 1;
      } else if (!missing && result.unknown++ < EncodedInputs::kMostUnknown) {
        result.first_unknown.push_back({.row = r,
                                        .column = table.names[columns[i]],
                                        .text = table.texts[columns[i]][static_cast<size_t>(x)]});
      }
      to += e.categories.size();
    }
  }
  table.values = {};
  result.table = std::move(out).done();
  return result;
}

std::vector<std::string> input_names(const TableColumns& columns) {
  std::vector<std::string> out;
  if (columns.names.empty()) return out;
  for (size_t i = 0; i < columns.inputs.size(); ++i) {
    const std::string& name = columns.names[columns.inputs[i]];
    if (columns.encodings.empty() || columns.encodings[i].categories.empty())
      out.push_back(name);
    else
      for (const std::string& category : columns.encodings[i].categories)
        out.push_back(name + "=" + category);
  }
  return out;
}

}  // namespace dpt
