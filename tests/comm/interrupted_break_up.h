// A process that is killed while it is within Team::break_up().
#pragma once

#include <csignal>

#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "comm/team.h"

namespace dpt {

// Forks a process that breaks the team up, and kills it at the first of its instructions after
// which the team is broken. False: the system does not let processes trace others.
inline bool kill_within_break_up(Team team, int rank, int code) {
  const pid_t child = fork();
  if (child == 0) {
    if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) _exit(1);
    raise(SIGSTOP);
    team.break_up(rank, "its reason", code);
    _exit(1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  while (WIFSTOPPED(status) && !team.broken()) {
    if (ptrace(PTRACE_SINGLESTEP, child, nullptr, nullptr) != 0) break;
    waitpid(child, &status, 0);
  }
  if (WIFEXITED(status)) return false;
  kill(child, SIGKILL);
  waitpid(child, &status, 0);
  return team.broken();
}

}  // namespace dpt
