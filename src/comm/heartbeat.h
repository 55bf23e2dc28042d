// Heartbeat: a thread of each rank. It shows the other ranks that the process runs, and ends the
// run if another rank is silent or the process that started the rank has ended.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "comm/team.h"

namespace dpt {

// The process that started this rank: torchrun, mpirun or dptrain itself.
struct LauncherProcess {
  int pid = 0;       // 0: the rank may outlive it
  std::string name;  // for messages
  // If it ends, so does this process, at once and without a message, since nobody would read it.
  bool must_live = false;
};

// Increments the rank's counter in the team's header (Team::heartbeat()) at least once a second,
// however long workers compute, save or wait. Breaks up the team, naming the rank and its process,
// epoch, step and phase, if
// - the counter of another rank has not changed for Team::timeout_s(): its process is stopped
//   (SIGSTOP, a debugger, a frozen container) or gone;
// - the process that started this rank has ended (but see LauncherProcess::must_live).
//
// The thread never waits for the reader of stderr.
//
// Silence is counted in this rank's own beats, so time in which this process did not run either
// (Ctrl-Z, a suspended machine) does not count.
//
// A worker thread that hangs in a running process, for example in a file system or a GPU that does
// not respond, looks like a long step or save and does not end the run. If no rank has begun a step
// for Team::notice_s(), rank 0 prints once to stderr where every rank is, and the run continues.
//
// Threads: any thread may create it; its own thread blocks all signals. Throws Error{rank} if the
// thread cannot be started. REQUIRES: one per rank at a time, created after the rank was forked.
class Heartbeat {
 public:
  Heartbeat(Team team, int rank, LauncherProcess launcher_process = {});
  ~Heartbeat();  // the rank is done, and others no longer expect its beats
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

 private:
  // State of another rank's counter.
  struct PeerStatus {
    uint32_t count = 0;
    double silent_beats = 0;  // own beats since `count` changed
  };
  void run() noexcept;
  void listen(double most_silent_beats) noexcept;
  void check_launcher_process() noexcept;
  void notice_stall(double most_beats) noexcept;

  Team team_;
  int rank_;
  LauncherProcess launcher_process_;
  std::vector<PeerStatus> peers_;   // [rank]
  std::vector<Progress> progress_;  // [rank]
  double beats_at_progress_ = 0;    // own beats since a rank's position changed
  bool stall_noticed_ = false;      // since then
  std::atomic<uint32_t> stop_ = 0;
  std::thread thread_;
};

// Starts a thread that blocks all signals, so handlers run in the other threads. Throws
// Error{rank}.
std::thread start_without_signals(std::function<void()> body);

}  // namespace dpt
