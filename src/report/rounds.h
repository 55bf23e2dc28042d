// Measures rows in turns, so that a phase in which the machine is slower affects all of them.
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
  double seconds = 1;  // timed per row and round
};

using Measure = std::function<Reading(const BenchRow&, const RunSteps&)>;
// What take_turns() reports and asks. Functions may be empty.
struct TurnsObserver {
  std::function<void(int round, const BenchRow&)> begins{};  // before each run; round 0: warm-up
  std::function<void(int round, const BenchRow&, const Reading&)> measured{};  // not of warm-ups
  std::function<bool()> stops{};  // true ends the measurement; asked before and after each run
};

// Steps that take about `seconds`, after a quarter as many of warm-up. Short steps are timed stage
// by stage only after the timed ones, since clock reads would add to their time. If `together`
// steps complete at once, all counts are multiples of it, and at least twice as many steps are
// timed.
RunSteps steps_for(double seconds_per_step, double seconds, int64_t together = 1);

// Runs each row once to estimate its step time, then `rounds` times in turn, and takes medians. A
// refused row is in the result with the reason. If it is stopped, the result has the rows that were
// measured at least once. Throws whatever `measure` throws except Refused, unless it is stopped.
std::vector<RowResult> take_turns(std::span<const BenchRow> rows, const BenchSettings& settings,
                                  const Measure& measure, const TurnsObserver& observer);

}  // namespace dpt
