#include "comm/child.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <iostream>
#include <system_error>

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fail.h"

namespace dpt {

void flush_all() {
  std::cout.flush();
  std::fflush(nullptr);
}

int run_in_child(const std::function<int()>& body) {
  flush_all();
  const pid_t parent = getpid(), pid = fork();
  if (pid < 0)
    fail(Fault::rank, "cannot start a process: {}", std::generic_category().message(errno));
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(static_cast<int>(Fault::rank));
    const int code = body();
    flush_all();
    _exit(code);
  }
  int status = 0;
  while (waitpid(pid, &status, 0) < 0)
    if (errno != EINTR)
      fail(Fault::rank, "cannot wait for a process: {}", std::generic_category().message(errno));
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace dpt
