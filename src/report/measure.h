// Measures one run of a row in a process of its own, with the same trainer and executor as any run.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>

#include "base/error.h"
#include "engine/plan_step_clock.h"
#include "report/row.h"
#include "session/session.h"

namespace dpt {

// The steps to run, after at least one step of warm-up.
struct RunSteps {
  PlanStepClock::Steps timed, marked;  // timed as a whole; timed stage by stage
  int64_t all() const { return std::max(timed.end, marked.end); }
};

// Opens the session of a row's spec with further overrides. Throws Error; errors of the spec are an
// Error{spec} with the rendered text.
using OpenSession = std::function<std::unique_ptr<const Session>(const std::vector<std::string>&)>;

// Starts a new process that calls run_row(notes, ...), and returns its exit code. It must exec:
// memory use of a process that is only forked would not be comparable.
using StartRow = std::function<int(const BenchRow&, int notes)>;

// The row cannot be run on this machine or from this spec; the message says why.
class Refused : public Error {
  using Error::Error;
};

// Runs a row for the given steps. Throws Refused if its session cannot be made or needs too much
// memory, and Error if the run failed later (the run has then printed the reason). Workers are
// pinned to the first of `cores`, or not at all if there are too few.
Reading measure(const BenchRow& row, const RunSteps& steps, std::span<const int> cores,
                const StartRow& start);

// The other side of measure(): what the new process does. `notes` is the file descriptor that it
// inherited. Returns the exit code. REQUIRES: called from a single-threaded process.
int run_row(int notes, const OpenSession& open);

// Which share of the pass that sums gradients and updates weights counts as communication: of the
// bytes that it moves, the share of gradients from other workers' shards. Fused gradients
// (graph/program/program.h, note [fused gradients]) count as computation.
double remote_share(const Session& session);

}  // namespace dpt
