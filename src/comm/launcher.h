// Starts the ranks of a run on this machine as processes, and handles their end.
#pragma once

#include <functional>

#include "comm/team.h"

namespace dpt {

struct LaunchSettings {
  int grace_ms = 200;      // after a failure: time for other ranks to end by themselves
  int terminate_ms = 300;  // then: time from SIGTERM to SIGKILL
  int hang_ms = 10'000;    // after break_up(): time for the first rank to end by itself
};

// Runs body(rank) for every rank of the team, each in a child process, and returns the exit code of
// the run. A team of one rank runs in this process.
//
// - body is called through run_rank(): an exception breaks up the team, and that rank prints it.
// - A rank that fails or is killed ends the run within a second. The exit code is that of the rank
//   that failed first. If it was killed, the code is that of Fault::rank, and one line on stderr
//   names the rank, the signal and the step. Codes of ranks that ended because of it are ignored.
// - SIGINT and SIGTERM, sent to this process or to any rank, set Team::stop_word(). If the ranks
//   agreed on a stop they return exit_code_of(agreed_stop()), and so does the run. A second signal
//   ends it at once. SIGUSR1 and SIGUSR2 are handled too (base/signals.h).
// - Children stay in this process group, so Ctrl-C reaches all. They die with this process, however
//   it ends. They share its stdout and stderr.
//
// REQUIRES: the process has one thread, because fork() copies no other; the team's header is in
// memory from SharedMemory::create(). Throws Error{rank} if a child cannot be started.
int launch(Team team, const std::function<int(int rank)>& body,
           const LaunchSettings& settings = {});

}  // namespace dpt
