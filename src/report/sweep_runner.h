// Trains the runs of a sweep: each in a process of its own, several at a time.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <sys/types.h>

#include "report/sweep_run.h"

namespace dpt {

struct SweepLimits {
  int jobs = 0;   // runs at a time; 0: as many as the cores allow
  int cores = 1;  // that the runs may use together
};

// What the runner tells while it works. Functions may be empty.
struct SweepObserver {
  std::function<void(const SweepRun&)> began, ended;  // states have changed already
  std::function<void()> changed;                      // some state or number has changed: save it
  std::function<void()> tick;                         // about fifty times per second
};

class SweepRunner {
 public:
  // command: the words that train a run, without its own values: {"dptrain", "train", "spec.yaml",
  // "epochs=3"}. `stop`: the number of a stop signal, once one has come (base/signals.h). All
  // arguments must outlive this object.
  SweepRunner(Sweep& sweep, std::vector<std::string> command, const SweepLimits& limits,
              const std::atomic<int>& stop, SweepObserver observer);
  // Kills runs that still go on, which happens only when an exception ends the sweep.
  ~SweepRunner();
  SweepRunner(const SweepRunner&) = delete;
  SweepRunner& operator=(const SweepRunner&) = delete;

  // Trains these runs until each has ended or has done `epochs` (0: all of its epochs), continuing
  // those that have checkpoints. Returns early, with all processes ended and their weights saved,
  // when a stop signal came or the sweep is decided. A run that fails does not stop the others.
  // REQUIRES: this process has one thread.
  void train(std::span<const size_t> runs, int64_t epochs = 0);

 private:
  struct Child;
  bool stopping() const { return stop_ != 0 || sweep_.is_decided(); }
  void start(size_t index, int64_t epochs);
  bool fits(const SweepRun& run) const;
  void watch(Child& child);
  bool take_if_ended(Child& child);
  bool collect();
  bool start_if_needed(size_t index, int64_t epochs);

  Sweep& sweep_;
  std::vector<std::string> command_;
  SweepLimits limits_;
  const std::atomic<int>& stop_;
  SweepObserver observer_;
  std::vector<std::unique_ptr<Child>> children_;
};

// The error of a run that ended with this code: the first line of its error.txt, or of the errors
// in its log from byte `from` on.
std::string failure_of(const std::string& run, int code, size_t from);

// The file to which a run's standard output and standard error go.
std::string log_file(const std::string& run);

}  // namespace dpt
