// Rows take turns: a machine that is slower for a while is so for all of them.
#pragma once

#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "report/measure.h"
#include "report/row.h"

namespace dpt {

struct BenchSettings {
  int rounds = 5;
  double seconds = 1;  // that a row is timed for in a round
};

using Measure = std::function<Reading(const BenchRow&, const RunSteps&)>;
// Called before each run, for people who wait; round 0 is the warm-up.
using Announce = std::function<void(int round, const BenchRow&)>;

// How many steps take `seconds`, with a quarter more before them to warm up. Short steps are marked
// stage by stage after those that are timed, since reading the clock would be part of their time.
// Where several end together all are multiples of these, and at least twice as many are timed.
RunSteps steps_for(double seconds_per_step, double seconds, int64_t together = 1);

// Runs every row once to see how long its steps take, then `rounds` times in turn, and takes
// medians. A row that is refused stands in the results with the reason. Throws what `measure` does
// but Refused.
std::vector<RowResult> take_turns(std::span<const BenchRow> rows, const BenchSettings& settings,
                                  const Measure& measure, const Announce& announce);

}  // namespace dpt
