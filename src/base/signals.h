// Ctrl-C and SIGTERM: the first asks for an orderly end, a second one ends the process at once.
// SIGUSR1 and SIGUSR2, by which batch systems warn of a time limit, only ever ask; so does SIGPIPE,
// which comes where nobody reads standard output any more.
#pragma once

#include <array>
#include <atomic>
#include <csignal>

namespace dpt {

// The exit code of a process that came to an orderly end by it: 128 + its number, as shells have
// it, or, where it was a warning, EX_TEMPFAIL, by which a job script knows to start it again.
int exit_code_of(int signal);

// Whether one of these signals has come: to the word of the StopSignals that live, or, after them,
// to the last ones. Thread: any.
bool stop_asked() noexcept;

// While one lives, these signals write their number into `word`, unless it holds one already.
// Nothing else happens in the handler: whoever runs the steps looks at the word. A second SIGINT or
// SIGTERM ends the process with 128 + its number; one that follows within 200 ms is taken as the
// same wish, since timeout(1) and torchrun send theirs to the process and to its group.
//
// The word may lie in memory that processes share. Children that are forked keep the handlers.
// REQUIRES: one at a time in a process, and `word` outlives it.
class StopSignals {
 public:
  explicit StopSignals(std::atomic<int>& word);
  ~StopSignals();  // what was before is back
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;
};

// While one lives, these signals end the process at once, with exit_code_of(signal): before there
// are steps after one of which a run can stop. A StopSignals takes them over for as long as it
// lives. Children that are forked keep the handlers. REQUIRES: one at a time in a process.
class StartupSignals {
 public:
  StartupSignals();
  ~StartupSignals();  // what was before is back
  StartupSignals(const StartupSignals&) = delete;
  StartupSignals& operator=(const StartupSignals&) = delete;

 private:
  std::array<struct sigaction, 5> before_;
};

}  // namespace dpt
