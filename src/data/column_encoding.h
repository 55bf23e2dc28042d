// Columns of a text table as numbers of a sample: categories, missing values, standardization.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/readers/csv.h"

namespace dpt {

struct EncodingQuery {
  bool fill_missing = false;  // by the mean of the training rows, as sklearn's SimpleImputer
  bool standardize = false;   // numbers, after filling, as sklearn's StandardScaler
};

// The encodings of the `inputs` columns of a table, by the rows that are trained on; empty rows:
// all. Columns that were read as texts become categories. A column of equal numbers is only
// shifted. Throws Error{data} if no row has a value of a column.
std::vector<ColumnEncoding> fit_encodings(const CsvTable& table, std::span<const size_t> inputs,
                                          std::span<const uint32_t> rows,
                                          const EncodingQuery& query, const std::string& path);

// A number of the column that float32 changes by a notable part of the column's spread, so that
// different numbers may become equal. Empty: there is none. REQUIRES: a column of numbers.
std::optional<double> number_losing_digits(const CsvTable& table, size_t column);

// Whether some column is changed or has categories.
bool changes_any(std::span<const ColumnEncoding> encodings);

struct EncodedInputs {
  Table table;             // f32 [rows, numbers of a sample]
  size_t filled = 0;       // fields that had no value
  size_t no_category = 0;  // fields of these in columns of categories
  size_t unknown = 0;      // fields whose text is none of the categories
  struct Unknown {
    size_t row = 0;
    std::string column, text;
  };
  std::vector<Unknown> first_unknown;  // the first kMostUnknown of these
  static constexpr size_t kMostUnknown = 5;
};
// The columns of all rows. Takes table.values: the memory of rows is freed while later ones are
// encoded. REQUIRES: as many encodings as columns, or none; columns with categories were read as
// texts, and missing fields only where the encoding accepts them.
EncodedInputs encode(CsvTable& table, std::span<const size_t> columns,
                     std::span<const ColumnEncoding> encodings);

// A name for each number of a sample: the column's, or "Sex=male" for a category. Empty if there
// are no columns.
std::vector<std::string> input_names(const TableColumns& columns);

}  // namespace dpt
