// Watchdog: ends a process that does not end by itself once its run has failed.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>

#include "comm/team.h"

namespace dpt {

// For ranks whose workers call a GPU's driver, where a call may never return. While one lives, a
// thread looks at the team. `limit_s` after the team was broken up it prints why, unless a rank has
// or will, and ends the process by _exit: with the run's exit code where `rank` is to blame, else
// with that of Fault::rank. The system then takes the GPU away from the process.
//
// Threads: any may make it; its own thread has all signals blocked. REQUIRES: made after the rank
// was forked. Errors: Error{rank} when the thread cannot be started.
class Watchdog {
 public:
  Watchdog(Team team, int rank, double limit_s);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  void run() noexcept;
  [[noreturn]] void end_process() noexcept;

  Team team_;
  int rank_;
  double limit_s_;
  std::atomic<uint32_t> stop_ = 0;
  std::thread thread_;
};

}  // namespace dpt
