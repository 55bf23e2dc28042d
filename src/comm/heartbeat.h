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

// While one lives, the rank's heartbeat count (Team::heartbeat()) moves at least once a second,
// however long its workers compute, save or wait.
//
// The team is broken up with Fault::rank, and the rank at fault named with its process id, epoch,
// step and phase, when
// - another rank's count has not moved for Team::timeout_s(). A process that is stopped (SIGSTOP, a
//   debugger, a frozen container) or ended is found so; a worker thread that hangs in a process
//   that runs (a file system or a GPU that does not answer) is not.
// - the process that started this rank has ended.
//
// Silence is counted in beats of one's own. So time in which this process did not run either
// (Ctrl-Z, a suspended machine) does not count.
//
// Thread: the one that makes it may be any; signals are blocked in the heartbeat's own.
// REQUIRES: one at a time for each rank, made after the rank was forked.
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

  Team team_;
  int rank_;
  Starter starter_;
  std::vector<Heard> heard_;  // by rank
  std::atomic<uint32_t> stop_ = 0;
  std::thread thread_;
};

// Starts a thread in which all signals are blocked: handlers run in the threads that were there.
std::thread start_without_signals(std::function<void()> body);

}  // namespace dpt
