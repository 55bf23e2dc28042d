// What `dptrain runs` prints: a row for each run, a column for each spec key that differs between
// them and for each result.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "train/run_summary.h"

namespace dpt {

struct RunRow {
  std::string name;  // as the table shows it
  RunSummary run;
};

struct RunsTable {
  std::vector<std::string> keys;  // of the specs; see make_runs_table()
  std::vector<RunRow> rows;
};

// The keys are those in `asked` that a spec has, then those whose values differ between the specs
// that could be read, without `out`. Throws Error{spec} where one of `asked` is neither empty, nor
// a key of a spec, nor one of result_columns().
RunsTable make_runs_table(std::vector<RunRow> rows, const std::vector<std::string>& asked);

// "last_loss", "state", ...: the columns that every table has; none is a key of a spec.
std::vector<std::string> result_columns();

// By a key or column: numbers by value before text, runs without a value last, equal ones in the
// order they had.
void sort_rows(RunsTable& table, const std::string& column);

// A table whose lines have at most `width` characters, at least 40; 0: any number. Columns that do
// not fit are left out and named below: spec keys after the third first, then results.
std::string runs_text(const RunsTable& table, size_t width);
std::string runs_csv(const RunsTable& table);   // all columns; first line: their names
std::string runs_json(const RunsTable& table);  // {"runs": [{"run": "1", "spec": {...}, ...}]}

// Loss, accuracy and samples per second by the value of a key, which makes the horizontal axis:
// one evenly spaced tick for each value. Runs without the key are left out. Throws Error{data}
// where nothing is left to draw.
std::string runs_svg(const RunsTable& table, const std::string& key);

}  // namespace dpt
