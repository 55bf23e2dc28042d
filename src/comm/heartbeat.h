// Heartbeat: a thread of each rank that shows the other ranks that its process runs, and that ends
// the run when another rank falls silent or the process that started the ranks has ended.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "comm/team.h"

namespace dpt {

// The process that started this rank (torchrun, mpirun, ...).
struct Starter {
  int pid = 0;       // 0: its end is no concern of the rank
  std::string name;  // for messages
};

// Increments the rank's counter in the team's header (Team::heartbeat()) at least once a second
// while it lives, however long the rank's workers compute, save or wait. Breaks the team up, naming
// the rank with its process, epoch, step and phase, when
// - the counter of another rank has not moved for Team::timeout_s(): its process is stopped
//   (SIGSTOP, a debugger, a frozen container) or gone;
// - the process that started this rank has ended.
//
// Silence is counted in this rank's own beats. Time in which this process did not run either
// (Ctrl-Z, a suspended machine) does not count.
//
// A worker thread that hangs in a running process, in a file system or a GPU that does not answer,
// looks like a long step or save and ends no run. When no rank has begun a step for
// Team::notice_s(), rank 0 prints every rank's place to stderr, once, and the run goes on.
//
// Threads: any may make it; the heartbeat's own thread has all signals blocked.
// REQUIRES: one at a time for each rank, made after the rank was forked. Errors: Error{rank} when
// the thread cannot be started.
class Heartbeat {
 public:
  Heartbeat(Team team, int rank, Starter starter = {});
  ~Heartbeat();  // the rank is done: the others no longer expect its heartbeat
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

 private:
  // What is known of another rank.
  struct Heard {
    uint32_t count = 0;
    double silent_beats = 0;  // of one's own since the count moved
  };
  void run() noexcept;
  void listen(double most_silent_beats) noexcept;
  void check_starter() noexcept;
  void notice_stall(double most_beats) noexcept;

  Team team_;
  int rank_;
  Starter starter_;
  std::vector<Heard> heard_;      // by rank
  std::vector<Progress> places_;  // of all ranks
  double beats_at_places_ = 0;    // own beats since one of them moved
  std::atomic<uint32_t> stop_ = 0;
  std::thread thread_;
};

// Starts a thread in which all signals are blocked: handlers run in the threads that were there.
std::thread start_without_signals(std::function<void()> body);

}  // namespace dpt
