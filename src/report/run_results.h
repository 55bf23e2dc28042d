// The results of runs as columns of a table, by their names: "loss", "best.loss", "test.accuracy",
// "seconds", "state".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "formats/json.h"
#include "train/run_summary.h"

namespace dpt {

struct ResultColumn {
  std::string name;   // in CSV and JSON; only `loss` is also a key of a spec
  std::string title;  // in the text table
  int rank = 0;       // if the table is too wide, the column with the highest rank is dropped first
  bool text = false;  // not a number
  bool if_different = false;  // the text table has the column only if its cells differ
};

// Counts, then the loss and the metrics of all runs, each with its best value, then times and
// state. Losses and accuracies of the test and validation sets are always among them.
std::vector<ResultColumn> result_columns(const std::vector<const RunSummary*>& runs);

Json result_value(const RunSummary& run, std::string_view name);        // null: it has none
std::string result_text(const RunSummary& run, std::string_view name);  // empty: it has none

}  // namespace dpt
