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
// empty, nor a key of a spec, nor a result (report/run_results.h).
RunsTable make_runs_table(std::vector<RunRow> rows, const std::vector<std::string>& asked);

// The result that a word of the table or of version 0.1.0 means: "test.loss" of "last_test_loss",
// "test.accuracy" of "accuracy" (of the validation set if no run has that of the test set),
// "samples_per_second" of "samples/s". Other words are returned as they are.
std::string result_named(const std::string& word, const std::vector<RunRow>& rows);

// A key in the specs of runs for what stands for one in overrides: "optimizer.adam.lr" for
// "optimizer.lr". Other words are returned as they are.
std::string key_named(const std::string& word, const std::vector<RunRow>& rows);

// By a key or column: numbers by value before text, the best first of metrics and speed, runs
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
