// Shows the progress of a run on standard error: a status line on a terminal, lines in a log.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "train/progress.h"
#include "train/sequence_lock.h"

namespace dpt {

// Output is written by a separate thread, so that progress is visible during long steps and
// evaluations, and a slow or stopped (Ctrl-S) terminal does not delay training. If the thread
// cannot be started, only what the training thread prints itself appears.
//
// On a terminal, the status line is redrawn at most ten times per second, and never while the
// process is in the background. Elsewhere, a line is written when there was none for an interval.
// Output that a terminal does not accept is buffered; the training thread waits if that exceeds 1
// MiB, or if a pipe is full.
//
// Threads: the training thread calls all functions.
class ProgressDisplay {
 public:
  struct Settings {
    double log_interval_s = 60;
    bool step_lines = false;  // step_line() will be called
    // Holds the line of a log, renewed each second while the run trains; empty: no file.
    std::string file{};
  };
  ProgressDisplay(const ProgressPlan& plan, const Settings& settings);
  ~ProgressDisplay();  // calls settle()
  ProgressDisplay(const ProgressDisplay&) = delete;
  ProgressDisplay& operator=(const ProgressDisplay&) = delete;

  // Starts the thread. plan: the constructor's, with the step at which the run begins. REQUIRES:
  // this process does not fork afterwards.
  void begin(const ProgressPlan& plan, const ProgressState& state);
  // Sets what the next line shows. Does not allocate or make system calls.
  void publish(const ProgressState& state) noexcept { state_.write(state); }
  // Prints the line soon; a terminal that is too slow shows only some of the lines.
  void step_line(const StepLine& line);
  // Prints complete lines to standard output and standard error, in this order, after all earlier
  // lines.
  void print(std::string out, std::string err);
  // Prints a result on standard output and its figures on standard error: "epoch 3/10: 0.2 s".
  // Where both appear in one place they are one line, or two on a narrow terminal. `messages`:
  // complete lines for standard error.
  void print_result(const std::string& result, const std::string& position,
                    const std::string& figures, std::string messages);
  // Ends the thread, removes the status line and waits until everything is written. Afterwards
  // other code may print.
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
  void write_progress_file(double now);
  double rest_s(double now) const;

  ProgressPlan plan_;
  Settings settings_;
  bool terminal_, same_terminal_, joined_;
  size_t most_lines_;
  SequenceLock<ProgressState> state_;

  std::mutex io_;  // held while writing; locked before mutex_
  SpeedEstimate speed_;
  double written_s_ = 0, drawn_s_ = 0;  // times of the last line and the last status line
  double filed_s_ = 0;                  // and of the last write to the file
  std::vector<StepLine> taken_lines_;
  std::vector<Item> taken_items_;
  int64_t taken_skipped_ = 0;

  std::mutex mutex_;  // guards the members below; held only briefly
  std::condition_variable wake_, took_;
  std::vector<StepLine> lines_;
  std::vector<Item> items_;
  size_t item_bytes_ = 0;
  int64_t skipped_ = 0;  // lines dropped because the terminal is slow
  bool wanted_ = false, stopping_ = false;
  std::thread thread_;
};

}  // namespace dpt
