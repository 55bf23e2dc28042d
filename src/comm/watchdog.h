// Watchdog: ends a process that does not end by itself after its run has failed.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>

#include "comm/team.h"

namespace dpt {

// For ranks with calls that may never return, of a GPU's driver or of MPI while it connects. While
// the object lives, a thread watches the team. If the process still runs `limit_s` after the team
// was broken up, the thread prints the reason, unless a rank has or will, and calls _exit(), even
// if standard error takes no message. The exit code is the run's if `rank` is to blame, else that
// of Fault::rank. The system then releases the GPU.
//
// Threads: any thread may create it; its own thread blocks all signals. Throws Error{rank} if the
// thread cannot be started. REQUIRES: created after the rank was forked.
class Watchdog {
 public:
  Watchdog(Team team, int rank, double limit_s);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  void run() noexcept;
  void print_reason() noexcept;
  [[noreturn]] void end_process() noexcept;

  Team team_;
  int rank_;
  double limit_s_;
  std::atomic<uint32_t> stop_ = 0;
  std::thread thread_;
};

}  // namespace dpt
