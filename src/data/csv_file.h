// The settings of the data set `csv`, and the reading of its files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/readers/csv.h"

namespace dpt {

// A text table: inputs f32 [N, numbers], which are columns of numbers, or categories of texts.
// Targets are f32 [N, columns], or one column of classes i32 [N].
struct Csv {
  static constexpr Usage kUsage{
      "",
      "dataset: {csv: {path: train.csv, test_path: test.csv, targets: label, classes: 3}}\n"
      "dataset: {csv: {path: train.csv, inputs: [0, 1, 2], targets: [-1], delimiter: \";\", "
      "decimal: \",\", header: no}}\n"
      "dataset: {csv: {path: iris.csv, targets: species, class_names: [setosa, versicolor]}}\n"
      "dataset: {csv: {path: titanic.csv, targets: Survived, classes: auto, exclude: [Name, "
      "Ticket],\n    categories: auto, missing: mean, standardize: true}}"};

  std::string path, test_path, delimiter = ",", decimal = ".", header = "auto", missing = "error";
  std::vector<std::string> targets{"-1"}, inputs, exclude, class_names, categories;
  int64_t classes = 0;
  bool auto_classes = false, standardize = false;
  static KeyTable<Csv> keys();
  static void check(const Csv& c, const Owner& owner, Diagnostics& d);
  bool has_classes() const { return auto_classes || classes > 0 || !class_names.empty(); }
  bool finds_categories() const { return categories == std::vector<std::string>{"auto"}; }
  // Whether something is found in the training set by which other sets are read.
  bool depends_on_training() const {
    return auto_classes || standardize || !categories.empty() || missing == "mean";
  }
};

// The columns of a file, as indices in the names of its table.
struct CsvColumns {
  std::vector<size_t> inputs, targets;
};

// The format of all files; CsvFormat::columns and others that name columns are empty.
CsvFormat format_of(const Csv& c);
// Throws NoTestSplit.
const std::string& path_of(const Csv& c, Split split);

struct CsvFile {
  CsvTable table;
  CsvColumns columns;
  // Given, or those of the training set; empty: the target column was read as text if
  // `auto_classes`, else it holds numbers.
  std::vector<std::string> class_names;
};
// Reads the input and target columns. training: LoadQuery::training_set, which then decides about
// columns, categories and classes; null: the settings and the file's texts do. label_words:
// CsvFormat's, if targets are numbers. Throws Error{data}.
CsvFile read_csv_file(const Csv& c, Split split, const Dataset* training, bool label_words);

// The columns of another file than the training file, and what is known of that: its columns, by
// `head`, and which of them are used.
struct CsvMatch {
  const std::vector<std::string>& names;
  bool header;
  std::vector<size_t> used;
};
// The head of the other file: its first line is a header if it has the names of the columns used,
// or, with `header: auto`, if it looks like one.
CsvHead matching_head(const std::string& path, const CsvFormat& format, const CsvMatch& match);
// The used columns in the other file, by their names. REQUIRES: both files have a header. Throws
// Error{data} if one is missing, or if only the other file has several of its name.
std::vector<size_t> matching_columns(const CsvHead& head, const CsvMatch& match,
                                     const std::string& path);

}  // namespace dpt
