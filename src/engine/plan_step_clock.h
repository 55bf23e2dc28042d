// Measures where a worker's time goes, for `dptrain bench`: the clock is read after each step of
// the plan and after each barrier. Runs without a measurement pass a null pointer instead.
#pragma once

#include <cstdint>
#include <ctime>

#include "base/units.h"
#include "engine/clock.h"

namespace dpt {

// Lies in memory that processes share: no pointers. Thread: its worker's own.
class alignas(kDestructiveInterference) PlanStepClock {
 public:
  enum Kind {
    compute,  // plan steps that compute shards, and the time between two training steps
    // Sums over the shards of all workers (losses, divisors, norms), copies between stages.
    exchange,
    update,   // the gradient sum and the optimizer, which are one pass
    waiting,  // barriers
    kinds
  };
  // Training steps [begin, end), counted from 0 since the start of the run.
  struct Steps {
    int64_t begin = 1, end = 2;
    int64_t count() const { return end - begin; }
    bool has(int64_t step) const { return begin <= step && step < end; }
  };

  PlanStepClock() = default;
  // `timed`: the steps whose total time is measured. `marked`: the steps that are also divided by
  // Kind. They may overlap if reading the clock costs little compared with a step. REQUIRES: both
  // begin after step 0.
  PlanStepClock(const Steps& timed, const Steps& marked) : timed_(timed), marked_(marked) {}

  // Attributes the time since the last mark to `kind`.
  void mark(Kind kind) {
    if (!marking_) return;
    const double now = now_s();
    seconds_[kind] += now - last_;
    ++marks_[kind];
    last_ = now;
  }

  void step_ends(int64_t samples) {
    const bool was_timed = timed_.has(step_);
    if (was_timed) samples_ += samples;
    ++step_;
    marking_ = marked_.has(step_);
    const bool edge = step_ == marked_.begin || step_ == marked_.end;
    if (timed_.has(step_) == was_timed && !edge) return;
    const double now = now_s();
    if (step_ == timed_.begin) begin_ = now;
    if (step_ == timed_.end) end_ = now;
    if (step_ == marked_.begin) last_ = now, on_core_ = -thread_s();
    if (step_ == marked_.end) on_core_ += thread_s();
  }

  double timed_seconds() const { return end_ - begin_; }
  int64_t timed_samples() const { return samples_; }
  // Over the marked steps: the seconds attributed to `kind`, and the number of mark() calls.
  double seconds(Kind kind) const { return seconds_[kind]; }
  int64_t marks(Kind kind) const { return marks_[kind]; }
  // CPU seconds of the thread over the marked steps. The rest of the time it slept at a barrier or
  // another program used its core.
  double on_core() const { return on_core_; }

 private:
  static double thread_s() {
    timespec t{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
  }

  Steps timed_, marked_;
  int64_t step_ = 0, samples_ = 0;
  bool marking_ = false;
  double begin_ = 0, end_ = 0, last_ = 0, on_core_ = 0;
  double seconds_[kinds] = {};
  int64_t marks_[kinds] = {};
};

}  // namespace dpt
