// Measures where one worker's time goes, for `dptrain bench`: the clock is read after each stage of
// the plan and after each meeting. Runs that are not measured have none, and pay a test of a
// pointer.
#pragma once

#include <cstdint>
#include <ctime>

#include "engine/clock.h"

namespace dpt {

// Lies in memory that processes share: no pointers. Thread: its worker's own.
class alignas(128) StageClock {
 public:
  enum Kind {
    compute,   // stages of shards, and what lies between two steps
    exchange,  // sums over the shards of all workers: losses, divisors, norms; copies between
               // stages
    update,    // the sum of gradients and the optimizer, which are one pass
    waiting,   // meetings
    kinds
  };
  // Steps begin..end of a run, counted from 0.
  struct Steps {
    int64_t begin = 1, end = 2;
    int64_t count() const { return end - begin; }
    bool has(int64_t step) const { return begin <= step && step < end; }
  };

  StageClock() = default;
  // Steps are timed as a whole in `timed` and stage by stage in `marked`; the two may overlap where
  // reading the clock is nothing beside a step. REQUIRES: both begin after step 0.
  StageClock(const Steps& timed, const Steps& marked) : timed_(timed), marked_(marked) {}

  // All time since the last mark was of this kind.
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
  // Of the steps that were marked: the time, and how many pieces it came in.
  double seconds(Kind kind) const { return seconds_[kind]; }
  int64_t marks(Kind kind) const { return marks_[kind]; }
  // What was spent on a core: the rest the worker slept in meetings, or other programs had it.
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
