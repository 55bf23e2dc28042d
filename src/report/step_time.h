// Predicts the time of a training step from measured costs of its pieces (engine/cpu/step_costs.h),
// and says what it consists of: `dptrain plan --time`.
#pragma once

#include <string>

#include "engine/cpu/step_costs.h"
#include "session/session.h"

namespace dpt {

// Seconds.
struct StepTime {
  double compute = 0;   // from loading to the last backward part, of the slowest worker or device
  double bubble = 0;    // part of `compute` in which the devices of a pipeline wait on average
  double update = 0;    // with norms, compression and the sum over shards
  double barriers = 0;  // waiting at them, if all workers arrive at once
  double total() const { return compute + update + barriers; }
};

//   step = max over workers (load + forward + loss + backward) + norm + update
//          + number of barriers * time of one
// With stages, the first term is the makespan of the plan's schedule. It assumes a core for each
// worker; more workers than cores are not faster than that.
StepTime predict_step(const Session& session, const StepCosts& costs);

// Lines about what a prediction assumes of this machine, and leaves out. Empty: nothing. at_once:
// StepCosts::at_once.
std::string assumptions_text(const Session& session, int at_once);

// Measures the costs on as many cores as this process may use, in memory of its own. Throws as
// step_time_text() does.
StepCosts measured_step_costs(const Session& session);

// Measures the session's kernels and returns the text of `plan --time`: the step's time, its parts
// and the slowest kernels. Takes about a second, and longer for steps longer than 0.1 s. Throws
// Error{device} for a session on GPUs, Error{memory} if the run would not fit.
std::string step_time_text(const Session& session);

}  // namespace dpt
