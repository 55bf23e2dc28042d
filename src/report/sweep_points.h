// The points of a sweep: one combination of values for each run.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "report/sweep_values.h"

namespace dpt {

// How values are combined.
struct SweepPlan {
  bool zip = false;  // the first values of all keys, the second ones, ...; else every combination
  int random = 0;    // so many points with random values; 0: not random
  int64_t random_seed = 0;
  int seeds = 0;  // runs of each point, with seed=0, 1, ...; 0: one, with the spec's seed
};

// One run. Runs of the same setting differ in their seed only.
struct SweepPoint {
  std::string name;  // "batch_size=32,lr=0.01,seed=0": also the name of its run directory
  size_t setting = 0;
  std::vector<std::pair<std::string, std::string>> values;  // key and value, the seed included

  std::vector<std::string> overrides() const;             // key=value
  const std::string* find(const std::string& key) const;  // null: the point does not set it
};

inline constexpr size_t kMostSweepRuns = 2000;

// Makes the points, in the order in which they run: the first key changes slowest, seeds change
// fastest. Where `parallel` is swept, points of `single` take one device, so those that differ in
// `devices` only are one point. Throws Error{spec} if lists of --zip differ in length, and if there
// are no points or more than kMostSweepRuns.
std::vector<SweepPoint> make_points(const SweepWords& words, const SweepPlan& plan);

// For each key its shortest end that differs from those of the others: "lr" of "optimizer.lr".
std::vector<std::string> short_keys(const std::vector<std::string>& keys);

}  // namespace dpt
