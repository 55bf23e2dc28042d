// Runs the workers of a rank as threads, and sees to it that one that fails ends the whole team.
#pragma once

#include <functional>
#include <span>

#include "comm/team.h"

namespace dpt {

// Calls body(worker) for every worker of `rank`: for the first on the calling thread, for each
// other on a thread of its own. Returns when all have returned.
//
// An exception leaves body: the team is broken up with its report, so that all others, of all
// ranks, leave their meetings by TeamBroken. Then it is thrown here; TeamBroken only when it was
// another rank's.
//
// cpus: where the workers are pinned, one for each; none: nobody is. The calling thread gets its
// old set of cores back. A core that cannot be had is no error.
void run_workers(Team team, int rank, const std::function<void(int worker)>& body,
                 std::span<const int> cpus = {});

// Breaks the team up with the report of the exception that is being handled, if it is the rank's
// own: not TeamBroken. So that other workers learn of it before objects are destroyed that wait for
// them. The rank's exception still has to reach run_workers() or run_rank(), which print it. With
// several ranks an Error{rank}, as of a connection that broke, first waits up to a second for
// another reason, which then is the team's.
// REQUIRES: called in a handler.
void report_failure(Team team, int rank) noexcept;

// The ranks' outermost function: calls body() and returns its exit code, or the one of what it
// throws. Any but 0 (and exit_code_of(Team::agreed_stop())) breaks the team up. An exception's
// report is printed to stderr, as "dptrain: rank 1: ...", if no other rank has said what ended the
// run, so that one message is all the user sees; a body that returns a code has printed why itself.
int run_rank(Team team, int rank, const std::function<int()>& body) noexcept;

}  // namespace dpt
