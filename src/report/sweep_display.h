// Shows a sweep on standard error while it runs: a live table on a terminal, lines in a log.
#pragma once

#include <cstddef>
#include <map>
#include <string>

#include "report/sweep_run.h"

namespace dpt {

// On a terminal, the table is redrawn at most ten times per second, and shows as many runs as fit:
// running ones first. Elsewhere, a line is printed when a run begins or ends, and one per minute.
class SweepDisplay {
 public:
  explicit SweepDisplay(const Sweep& sweep);
  ~SweepDisplay();  // erases the table
  SweepDisplay(const SweepDisplay&) = delete;
  SweepDisplay& operator=(const SweepDisplay&) = delete;

  void began(const SweepRun& run);
  void ended(const SweepRun& run);
  void tick();

 private:
  void erase();
  std::string summary() const;
  double seconds_left(const SweepRun& run, double now) const;

  const Sweep& sweep_;
  bool terminal_;
  double began_s_, drawn_s_ = 0;
  size_t lines_ = 0;  // of the table on the terminal
  struct Begin {
    double at_s;
    int64_t epochs;
  };
  std::map<const SweepRun*, Begin> begins_;
  double done_before_ = 0;  // share of the sweep
};

// "done" from 0 to 1: epochs that are done, over those that there are.
double share_done(const Sweep& sweep);

}  // namespace dpt
