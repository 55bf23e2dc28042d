// Starts the ranks of a run on this machine as processes and answers for their end.
#pragma once

#include <functional>

#include "comm/team.h"

namespace dpt {

struct LaunchSettings {
  int grace_ms = 200;      // after a failure the other ranks have so long to end by themselves,
  int terminate_ms = 300;  // then, after SIGTERM, so long until they are killed
  int hang_ms = 10'000;    // after a failure a first rank has so long to end by itself
};

// Runs body(rank) for every rank of the team, each in a child process of this one, and returns the
// exit code of the whole run; a team of one rank runs right here, without a child.
//
// - body is called through run_rank(): what it throws ends the team and is printed by that rank.
// - A rank that fails, or is killed, ends the run within a second. The code is that of the rank
// that
//   failed first, 6 when it was killed; that case is told on stderr, in one line that names the
//   rank, the signal, and the step. Codes of ranks that ended because of it do not count.
// - SIGINT and SIGTERM, to this process or to any rank, reach Team::stop_word(). Ranks that agreed
// on
//   a stop return exit_code_of(agreed_stop()), which then is the run's code. A second signal ends
//   it at once; SIGUSR1 and SIGUSR2 are heard, too (base/signals.h).
// - Children stay in this process group, so Ctrl-C reaches all. They die when this process does,
//   however it ends. Standard output and error are theirs too: who prints is theirs to agree on.
//
// REQUIRES: called from a process of one thread, as fork copies no other; the team's header lies in
// memory made by SharedMemory::create(). Errors: Error{rank} when a child cannot be started.
int launch(Team team, const std::function<int(int rank)>& body,
           const LaunchSettings& settings = {});

}  // namespace dpt
