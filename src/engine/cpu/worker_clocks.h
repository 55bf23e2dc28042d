// What is measured of one worker's time: for `bench` (PlanStepClock), for `--trace` (Trace), and
// for the progress line (WaitClock). Measuring what nobody asked for costs a comparison.
#pragma once

#include <cstdint>

#include "engine/cpu/memory_watch.h"
#include "engine/plan_step_clock.h"
#include "engine/trace.h"
#include "engine/wait_clock.h"

namespace dpt {

// Thread: its worker's.
class WorkerClocks {
 public:
  // clock, trace: null: not measured; else they must outlive this. worker: its number; waits are
  // measured on the first.
  WorkerClocks(PlanStepClock* clock, Trace* trace, int worker)
      : clock_(clock), trace_(trace), worker_(worker) {}

  void begin_step(uint64_t step) {
    step_ = step;
    if (worker_ == 0) wait_clock_.begin_step(step);
  }
  void end_step(int64_t samples) {
    if (clock_) clock_->step_ends(samples);
  }
  // Attributes the time since the last mark to `kind`.
  void mark(PlanStepClock::Kind kind) {
    if (clock_) clock_->mark(kind);
  }
  // Calls f() and records its time in the trace. chunk: the micro-batch.
  template <class F>
  void traced(const PlanStep& s, int chunk, F f) {
    if (memory_watch) memory_watch->begin(worker_, s);
    if (!trace_) return f();
    const double begin = now_s();
    f();
    trace_->add(s, chunk, static_cast<int64_t>(step_), begin);
  }
  // Calls f(), which waits, and records for how long.
  template <class F>
  void wait(WaitClock::Kind kind, F f) {
    wait_clock_.record(kind, f);
  }
  double seconds(WaitClock::Kind kind) const { return wait_clock_.seconds(kind); }
  PlanStepClock* plan_steps() const { return clock_; }

 private:
  PlanStepClock* clock_;
  Trace* trace_;
  int worker_;
  uint64_t step_ = 0;
  WaitClock wait_clock_;
};

}  // namespace dpt
