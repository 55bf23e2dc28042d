// The table of `dptrain runs`: a row for each run, a column for each result and for each spec key
// whose values differ.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "train/run_summary.h"

namespace dpt {

struct RunRow {
  std::string name;  // as shown in the table
  RunSummary run;
};

struct RunsTable {
  std::vector<std::string> keys;  // keys of the specs; see make_runs_table()
  std::vector<RunRow> rows;
};

// Makes the table. Its keys are first those in `asked` that a spec has, then those whose values
// differ between readable specs, except `out`. Throws Error{spec} if an entry of `asked` is neither
// empty, nor a key of a spec, nor one of result_columns().
RunsTable make_runs_table(std::vector<RunRow> rows, const std::vector<std::string>& asked);

// The columns that every table has, such as "last_loss" and "state". None is a key of a spec.
std::vector<std::string> result_columns();

// "last_loss" of "loss", "last_accuracy" of "accuracy", "samples_per_second" of "samples/s": the
// column that a word of the table means; other words as they are.
std::string result_named(const std::string& word);

// By a key or column: numbers by value before text, the highest accuracy and speed first, runs
// without a value last, equal ones in the order they had.
void sort_rows(RunsTable& table, const std::string& column);

// A table whose lines have at most `width` characters, at least 40; 0: any number. Columns that do
// not fit are left out and named below: spec keys after the third first, then results, of which the
// loss and the state always stay.
std::string runs_text(const RunsTable& table, size_t width);
std::string runs_csv(const RunsTable& table);   // all columns; the first line has their names
std::string runs_json(const RunsTable& table);  // {"runs": [{"run": "1", "spec": {...}, ...}]}

// Loss, accuracy and samples per second by the value of a key, which makes the horizontal axis:
// one tick for each value, evenly spaced; by the logarithm where all values are powers of two or of
// ten. Runs without the key are left out. Throws Error{data}
// where nothing is left to draw.
std::string runs_svg(const RunsTable& table, const std::string& key);

}  // namespace dpt
