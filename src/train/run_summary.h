// Summarizes a run from the files of its directory: its spec, progress and results.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "spec/changes.h"
#include "train/metrics_record.h"
#include "train/run_numbers.h"

namespace dpt {

enum class RunState {
  running,   // a process holds its lock
  finished,  // did all epochs or steps of its spec, or `early_stop` ended it
  stopped,   // ended early with its weights saved: Ctrl-C, SIGTERM, a time limit
  diverged,  // the loss was not finite
  failed,    // another error; see RunSummary::note
  killed,    // ended without saving weights or an error: SIGKILL, or a crash of the machine
  unknown    // a file is missing or unreadable; see RunSummary::note
};
std::string_view name_of(RunState state);

struct RunSummary {
  std::string path;  // as returned by find_runs()
  FlatSpec spec;
  std::optional<MetricsRecord> environment;  // env.json; empty: it is missing or damaged
  RunNumbers numbers;
  RunState state = RunState::unknown;
  std::string note;  // one line: a problem with its files, or the run's error
};

// The directories at and below `directory` that have a spec.resolved.yaml or a metrics.jsonl,
// sorted with numbers by value (2 before 10). Does not follow links, so runs/NAME/latest is not
// listed, nor enter checkpoints. Throws Error{data} if `directory` is not a directory.
std::vector<std::string> find_runs(const std::string& directory);

// Reads a run directory. Missing or damaged files are named in `note`.
RunSummary summarize_run(const std::string& path);

// Compares names with numbers by value: "runs/2" before "runs/10".
bool natural_less(std::string_view a, std::string_view b);

}  // namespace dpt
