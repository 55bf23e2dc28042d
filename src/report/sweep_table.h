// The results of a sweep as text, CSV and rows for pictures.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/sweep_run.h"
#include "report/text_table.h"

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

// A table of the settings. Columns are left out as by fit_columns(), but for the swept keys and the
// metric; width 0: none.
std::string sweep_text(const Sweep& sweep, size_t width);

// A line for each run: name, values, state, every metric's last and best value, times.
std::string sweep_csv(const Sweep& sweep);

// The columns of the table, and of that in sweep.html.
std::vector<TextColumn> sweep_columns(const Sweep& sweep, const std::vector<SettingRow>& rows);

// The metrics that any run has recorded, without lr.
std::vector<std::string> recorded_metrics(const Sweep& sweep);

}  // namespace dpt
