// A sweep: its runs, what it looks for, and how far it is.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "report/sweep_points.h"
#include "train/run_data.h"
#include "train/run_numbers.h"

namespace dpt {

enum class SweepState {
  waiting,   // not begun
  running,   // a process trains it
  stopped,   // interrupted: the same command continues it
  paused,    // stopped at the end of a rung of successive halving
  finished,  // did all epochs
  reached,   // ended early, because it reached the target
  dropped,   // successive halving does not continue it
  failed     // ended with an error; see SweepRun::note
};
std::string_view name_of(SweepState state);  // as in sweep.json
std::optional<SweepState> sweep_state_named(std::string_view name);

// Facts about a run's spec.
struct SweepFacts {
  int64_t epochs = 0;  // to train; 0: `steps` ends it
  int cores = 1;       // workers
  std::string mode = "single", precision = "fp32";
  int64_t devices = 1, batch_size = 1;
  std::optional<DataRecord> data{};  // empty: it is made up, or read by another run's means
};

struct SweepRun {
  SweepPoint point;
  SweepFacts facts{};
  SweepState state = SweepState::waiting;
  std::string note{};    // one line: why it failed or was dropped
  RunNumbers numbers{};  // of its metrics.jsonl

  bool has_ended() const {
    return state == SweepState::finished || state == SweepState::reached ||
           state == SweepState::dropped || state == SweepState::failed;
  }
};

// A value of a metric that runs are to reach.
struct SweepTarget {
  std::string metric;  // full name
  double value = 0;
  bool ends_sweep = false;  // the first run that reaches it ends the sweep, not only itself
};

struct Sweep {
  std::string name;               // of the spec
  std::string folder;             // holds the run directories, named as the points
  std::vector<std::string> keys;  // that are swept, without the seed
  std::vector<SweepRun> runs;
  std::string metric;  // by which runs are compared; may begin with "best."
  std::optional<SweepTarget> target;
  int seeds = 0;  // per setting; 0: one run with the spec's seed

  std::string folder_of(const SweepRun& run) const { return folder + "/" + run.point.name; }
  size_t settings() const;  // how many
  std::vector<const SweepRun*> of_setting(size_t setting) const;
  // When a run reached the target; null: it did not, or there is none.
  const NumbersRecord* reached(const SweepRun& run) const;
  bool is_decided() const;  // a run has reached a target that ends the sweep
};

// Mean and standard deviation (of a sample: n - 1) of a number over runs that have it.
struct SeedMean {
  int count = 0;
  double mean = 0, deviation = 0;  // deviation: 0 of a single run
};
SeedMean mean_of(const std::vector<double>& values);

}  // namespace dpt
