// Runs the workers of a rank as threads; a failing worker ends the whole team.
#pragma once

#include <functional>
#include <span>

#include "comm/team.h"

namespace dpt {

// Calls body(worker) for every worker of `rank`: the first on the calling thread, the others on
// threads of their own. Returns when all calls have returned.
//
// If body throws, the team is broken up with the exception's report, so that workers of all ranks
// leave their barriers by TeamBroken. Then the exception is rethrown here; TeamBroken only if the
// failure was another rank's.
//
// cpus: the core of each worker; empty: workers are not pinned. The calling thread's set of cores
// is restored at the end. Failing to pin is no error.
void run_workers(Team team, int rank, const std::function<void(int worker)>& body,
                 std::span<const int> cpus = {});

// Breaks up the team with the report of the current exception, unless that is TeamBroken. Other
// workers then learn of the failure before objects are destroyed that wait for them. The exception
// must still reach run_workers() or run_rank(). With several ranks an Error{rank}, such as a broken
// connection, first waits up to a second for another rank's reason, which then becomes the team's.
// REQUIRES: called in a handler.
void report_failure(Team team, int rank) noexcept;

// The outermost function of a rank: calls body() and returns its exit code, or that of its
// exception. A code other than 0 and exit_code_of(Team::agreed_stop()) breaks up the team. The
// exception's report is printed to stderr as "dptrain: rank 1: ...", unless another rank has told
// why the run ended, so that the user sees one message. A body that returns a code must have
// printed why.
int run_rank(Team team, int rank, const std::function<int()>& body) noexcept;

}  // namespace dpt
