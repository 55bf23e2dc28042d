// What the files of a run directory say about the run: its spec, its progress, its results.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "spec/changes.h"

namespace dpt {

enum class RunState {
  running,   // a process holds its lock
  finished,  // as many epochs or steps as its spec asks for
  stopped,   // earlier, but with its weights saved: Ctrl-C, SIGTERM, a time limit
  diverged,  // the loss was not finite
  failed,    // another error, which the note holds
  killed,    // earlier and without weights or an error: SIGKILL, or the machine went down
  unknown    // a file is missing or cannot be read; see RunSummary::note
};
std::string_view name_of(RunState state);

// A metric over the epochs that have it; NaN is never best.
struct MetricRange {
  std::optional<double> last, best;
};

struct RunSummary {
  std::string path;  // as find_runs() gives it
  FlatSpec spec;
  int64_t epochs = 0, steps = 0;             // that are done; steps: of these epochs
  MetricRange loss, test_loss, accuracy;     // of epochs; accuracy: from 0 to 1
  double seconds = 0;                        // of training, without evaluation
  std::optional<double> samples_per_second;  // over all epochs
  RunState state = RunState::unknown;
  std::string note;  // what is wrong with its files, or its error; one line
};

// The directories at and below `directory` that hold a spec.resolved.yaml or a metrics.jsonl,
// sorted, with numbers by value (2 before 10). Links are not followed, so runs/NAME/latest is not
// listed; checkpoints are not runs. Throws Error{data} where `directory` is not one.
std::vector<std::string> find_runs(const std::string& directory);

// Reads a run directory. Files that are missing or broken are named in `note`.
RunSummary summarize_run(const std::string& path);

// "runs/2" before "runs/10".
bool natural_less(std::string_view a, std::string_view b);

}  // namespace dpt
