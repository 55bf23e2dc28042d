// Ctrl-C and SIGTERM: the first asks for an orderly end, a second one ends the process at once.
// SIGUSR1 and SIGUSR2, by which batch systems warn of a time limit, only ever ask; so do SIGHUP
// (the terminal was closed), SIGXCPU (the limit on CPU time) and SIGPIPE, which comes where nobody
// reads standard output any more. SIGHUP and SIGXCPU stay ignored where they are, as by nohup(1).
#pragma once

#include <array>
#include <atomic>
#include <csignal>

namespace dpt {

// In place of a signal's number: the run's own limit on time was reached.
inline constexpr int kTimeLimitReached = 1000;

// The exit code of a process that a signal brought to an orderly end: 128 + its number, as in
// shells. For SIGUSR1 and SIGUSR2, EX_TEMPFAIL, which tells a job script to start the run again.
// For kTimeLimitReached, 0.
int exit_code_of(int signal);

// Whether a stop signal has arrived: during the lifetime of a StopSignals, whether its word is set;
// otherwise, whether this process got a signal since the last StopSignals was made. Thread: any.
bool stop_asked() noexcept;

// During its lifetime, the first stop signal writes its number into `word`. The handler does
// nothing else: the code that runs the steps polls the word. A second SIGINT or SIGTERM ends the
// process with 128 + its number, unless it follows within 200 ms: timeout(1) and torchrun signal
// both the process and its process group.
//
// The word may lie in memory shared with other processes. Forked children inherit the handlers.
// REQUIRES: at most one per process at a time; `word` outlives it.
class StopSignals {
 public:
  explicit StopSignals(std::atomic<int>& word);
  ~StopSignals();  // restores the previous handlers
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;
};

// During its lifetime, stop signals end the process at once with exit_code_of(signal). For the
// start of a run, before there are steps to stop between. A StopSignals takes precedence while it
// lives. Forked children inherit the handlers. REQUIRES: at most one per process at a time.
class StartupSignals {
 public:
  StartupSignals();
  ~StartupSignals();  // restores the previous handlers
  StartupSignals(const StartupSignals&) = delete;
  StartupSignals& operator=(const StartupSignals&) = delete;

 private:
  std::array<struct sigaction, 7> before_;
};

}  // namespace dpt
