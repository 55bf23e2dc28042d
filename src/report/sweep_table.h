// The results of a sweep as text, CSV and rows for pictures.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/sweep_run.h"

namespace dpt {

// A setting with means over its seeds.
struct SettingRow {
  size_t setting = 0;
  std::vector<std::string> values;  // of Sweep::keys; "-": not set
  SeedMean metric, loss, epochs, seconds, samples_per_second;
  SeedMean reached_epoch, reached_s;  // of the runs that reached the target
  int runs = 0, ended = 0;            // ended: finished, or stopped for good
  std::string state;                  // of all runs if they agree, else "2 of 3 finished"
};

// Best first: with a target, settings whose runs reached it in the least time; then by the metric,
// those without it last.
std::vector<SettingRow> setting_rows(const Sweep& sweep);

// A table of the settings, whose lines fit into `width` characters if values are not too long; 0:
// any number.
std::string sweep_text(const Sweep& sweep);

// A line for each run: name, values, state, every metric's last and best value, times.
std::string sweep_csv(const Sweep& sweep);

// For tables: a title and cells, of which numbers align at the right.
struct SweepColumn {
  std::string title;
  std::vector<std::string> cells;
};
std::vector<SweepColumn> sweep_columns(const Sweep& sweep, const std::vector<SettingRow>& rows);
std::string aligned_text(const std::vector<SweepColumn>& columns);

// Shortens the columns of the live table, whose first one is `run`, to lines of `width` characters:
// takes the set off the metric's title, leaves out `left` and `state`, and cuts names of runs at
// their beginning, where they are alike.
std::vector<SweepColumn> fitted(std::vector<SweepColumn> columns, size_t width);

// Accuracies and the like in percent, others with four decimals.
std::string metric_text(std::string_view metric, double value);

// The metrics that any run has recorded, without lr.
std::vector<std::string> recorded_metrics(const Sweep& sweep);

}  // namespace dpt
