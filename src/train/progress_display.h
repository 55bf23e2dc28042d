// Shows how far a run is, on standard error: a status line on a terminal, lines in a log.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "train/progress.h"
#include "train/progress_board.h"

namespace dpt {

// A thread of its own writes, so that long steps and evaluations are seen too, and a terminal that
// is stopped (Ctrl-S) or slow does not delay training. Where the thread cannot be started, what the
// training thread prints is all there is.
//
// On a terminal, the status line is drawn at most ten times a second; nothing is drawn while the
// process is in the background. Elsewhere a line is written once there was none for an interval.
// What a stopped terminal has not taken is kept; the training thread waits when that is more than
// 1 MiB, and when a pipe that is no terminal is full.
//
// Threads: all functions by the training thread.
class ProgressDisplay {
 public:
  struct Settings {
    double log_interval_s = 60;
    bool step_lines = false;  // step_line() will be called
  };
  ProgressDisplay(const ProgressPlan& plan, const Settings& settings);
  ~ProgressDisplay();  // settles
  ProgressDisplay(const ProgressDisplay&) = delete;
  ProgressDisplay& operator=(const ProgressDisplay&) = delete;

  // Starts the thread. plan: that of the constructor, with where the run begins. REQUIRES: this
  // process forks no more.
  void begin(const ProgressPlan& plan, const ProgressState& state);
  // What the next line shows. Allocates nothing and does not call the kernel.
  void publish(const ProgressState& state) noexcept { board_.write(state); }
  // Printed within a moment; a terminal that is too slow for all of them gets some.
  void step_line(const StepLine& line);
  // Whole lines for standard output and standard error, in this order, behind those before them.
  void print(std::string out, std::string err);
  // Ends the thread, removes the status line and waits until all was written: from then on others
  // may print.
  void settle();

 private:
  struct Item {
    bool out;
    std::string text;
  };
  void run() noexcept;
  void write_all(bool draw);
  void take();
  void draw(double now);
  double rest_s(double now) const;

  ProgressPlan plan_;
  Settings settings_;
  bool terminal_, same_terminal_;
  size_t most_lines_;
  Board<ProgressState> board_;

  std::mutex io_;  // held while something is written; taken before mutex_
  Pace pace_;
  double written_s_ = 0, drawn_s_ = 0;  // the last line, the last status line
  std::vector<StepLine> taken_lines_;
  std::vector<Item> taken_items_;
  int64_t taken_skipped_ = 0;

  std::mutex mutex_;  // of what follows; held for a moment
  std::condition_variable wake_, took_;
  std::vector<StepLine> lines_;
  std::vector<Item> items_;
  size_t item_bytes_ = 0;
  int64_t skipped_ = 0;  // lines that a slow terminal does not get
  bool wanted_ = false, stopping_ = false;
  std::thread thread_;
};

}  // namespace dpt
