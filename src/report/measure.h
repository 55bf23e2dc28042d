// One run of a row, in a process of its own, by the trainer and the executor of every run.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>

#include "base/error.h"
#include "engine/stage_clock.h"
#include "report/row.h"
#include "session/session.h"

namespace dpt {

struct RunSteps {
  StageClock::Steps timed, marked;  // after at least one step to warm up
  int64_t all() const { return std::max(timed.end, marked.end); }
};

// The session of a row's spec with more overrides. Throws Error, Error{spec} with the complaints as
// its text.
using OpenSession = std::function<std::unique_ptr<Session>(const std::vector<std::string>&)>;

// Runs run_row(notes, ...) in a new process, started as every run is: one that was forked would
// have other memory. Returns its exit code.
using StartRow = std::function<int(const BenchRow&, int notes)>;

// A row that can't be run on this machine or from this spec: its text says why.
class Refused : public Error {
  using Error::Error;
};

// Runs so many steps of a row. Throws Refused where its session can't be made or is too large,
// Error when the run, having begun, failed; it has said why then. cores: to which its workers are
// pinned, the first ones; where these are too few, none is.
Reading measure(const BenchRow& row, const RunSteps& steps, std::span<const int> cores,
                const StartRow& start);

// The other end: what the new process does. `notes`: the descriptor that it was given. Returns the
// exit code. REQUIRES: called from a process of one thread.
int run_row(int notes, const OpenSession& open);

// How much of the time of the pass that sums gradients and updates weights counts as communication:
// of the bytes that it moves, those of the gradients of other workers' shards. Gradients that are
// made in that pass (graph/program/program.h, note [fused]) are no traffic but computing.
double foreign_share(const Session& session);

}  // namespace dpt
