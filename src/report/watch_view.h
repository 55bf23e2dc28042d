// What `dptrain watch` shows of a run. Pure functions: time and terminal are arguments.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "report/run_curves.h"
#include "report/text_chart.h"

namespace dpt {

struct WatchedRun {
  std::string path, spec;         // spec: its name
  std::string state;              // "running", "finished", ...
  std::string note;               // why it failed; empty: nothing to say
  int64_t epochs = 0, steps = 0;  // of the whole run; 0: unknown
  double began = 0;               // UTC in seconds; 0: unknown
  std::string progress;           // what the run says of its last step; empty: nothing
  const RunCurves* curves = nullptr;
};

// Lines of at most size.columns - 1 characters: name and state, position, the last and the best
// numbers, and a chart of the loss in the rows that are left, at most size.rows in all.
std::vector<std::string> watch_lines(const WatchedRun& run, const TextChartSize& size, double now);

// A line about a record of metrics.jsonl for a log: "epoch 3/10: loss 0.3120, validation loss
// 0.3410, ..."; empty if the line is no record.
std::string record_line(const WatchedRun& run, std::string_view line);

// When a log shows the position of a run: as soon as it is known, and after a minute without a
// line, as the run's own log does (train/progress_display.h).
class LogPosition {
 public:
  // A line "epoch 1/10, step 30/60: loss 0.4, ..."; empty: none is due. recorded: a record has been
  // printed since the last call. Call it again and again.
  std::string line(const WatchedRun& run, bool recorded, double now);

 private:
  double printed_ = 0;  // time of the last line; 0: no position has been shown
};

// "runs/fmnist/3: finished, epoch 10/10, loss 0.3120 (best 0.3120), ...". width: longer lines
// break between these parts; 0: one line.
std::string final_text(const WatchedRun& run, size_t width);

}  // namespace dpt
