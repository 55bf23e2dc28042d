// The settings of the data set `csv`, and the reading of its files.
#pragma once

#include <any>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/dataset.h"
#include "data/readers/csv.h"
#include "spec/keys.h"

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
      "Ticket],\n    categories: auto, missing: mean, missing_targets: drop, standardize: true}}"};

  std::string path, test_path, delimiter = ",", decimal = ".", header = "auto", missing = "error",
                               missing_targets = "error";
  std::vector<std::string> targets{"-1"}, inputs, exclude, class_names, categories;
  int64_t classes = 0;
  bool auto_classes = false, standardize = false;
  // The inputs are names of files: any number of different texts, read as they are.
  bool reads_names = false;
  static KeyTable<Csv> keys();
  // The keys of targets and of the format, which other data sets of tables have, too.
  template <class Config>
  static void add_target_keys(KeyTable<Config>& t);
  template <class Config>
  static void add_class_keys(KeyTable<Config>& t);
  template <class Config>
  static void add_format_keys(KeyTable<Config>& t);
  static void check(const Csv& c, const Owner& owner, Diagnostics& d);
  bool has_classes() const { return auto_classes || classes > 0 || !class_names.empty(); }
  bool finds_categories() const { return categories == std::vector<std::string>{"auto"}; }
  // Whether something is found in the training set by which other sets are read.
  bool depends_on_training() const {
    return auto_classes || standardize || !categories.empty() || missing == "mean";
  }
};

// For the key `classes`.
void read_classes(Csv& c, const Node& n, Diagnostics& d);
Json classes_schema();

template <class Config>
void Csv::add_target_keys(KeyTable<Config>& t) {
  t.optional("targets", &Csv::targets,
             "target columns, by name or by number from 0 (negative: from the end)")
      .shared()
      .choice("missing_targets", &Csv::missing_targets, {"error", "drop"},
              "what happens to lines whose target has no value: an error, or they are left out; "
              "with `missing: drop`, too");
}

template <class Config>
void Csv::add_class_keys(KeyTable<Config>& t) {
  t.optional_section("classes",
                     "number of classes in the target column, which holds 0, 1, ...; auto: its "
                     "values are the names of the classes, in sorted order; 0: targets are real "
                     "numbers",
                     read_classes,
                     {.kind = "an integer or auto",
                      .fallback = "0",
                      .type = KeyKind::integer,
                      .schema = classes_schema()})
      .shared()
      .optional("class_names", &Csv::class_names,
                "values of the target column if it holds text, in the order of their classes")
      .shared();
}

template <class Config>
void Csv::add_format_keys(KeyTable<Config>& t) {
  t.choice("delimiter", &Csv::delimiter, {",", ";", "|", "tab"}, "character between two fields")
      .choice("decimal", &Csv::decimal, {".", ","},
              "decimal mark: 1.5 or 1,5; thousands separators are not read")
      .choice("header", &Csv::header, {"auto", "yes", "no"},
              "whether the first line names the columns; auto: yes if its fields differ in kind "
              "from those below, as names from numbers do");
}

// The columns of a file, as indices in the names of its table.
struct CsvColumns {
  std::vector<size_t> inputs, targets;
};

// The format of all files; CsvFormat::columns and others that name columns are empty.
CsvFormat format_of(const Csv& c);
// dataset: the name of the data set. Throws NoTestSplit.
const std::string& path_of(const Csv& c, Split split, std::string_view dataset = "csv");

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

// The training set, by which other sets are read; null: this set is read by itself. `own` holds it
// if it must be loaded for that.
const Dataset* training_of(const std::any& settings, const std::string& path,
                           const LoadQuery& query, std::optional<Dataset>& own,
                           Dataset (*load)(const std::any&, const LoadQuery&));
// Throws Error{data} if `class_names` are not the classes of the training set.
void check_class_names(const Csv& c, const Dataset& training, const std::string& path);
// Sets targets, classes, and their names. training: as for read_csv_file(), whose result `file` is.
void set_targets(Dataset& d, const Csv& c, CsvFile& file, const LoadQuery& query,
                 const Dataset* training, const std::string& path);
// "; its first line is the header: a, b, ..."; and how many lines are left out.
std::string lines_text(const CsvTable& table);
// Columns of numbers: f32 [N, columns].
Table numbers_of(const CsvTable& table, const std::vector<size_t>& columns);

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
