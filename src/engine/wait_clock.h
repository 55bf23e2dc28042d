// Measures how long a worker waits in training steps: for samples (and makes batches of them), and
// for other workers. Reading the clock takes some 25 ns, so not every one of many short steps is
// measured.
#pragma once

#include <cstdint>

#include "engine/clock.h"

namespace dpt {

// Thread: its worker's own.
class WaitClock {
 public:
  enum Kind { data, barriers, kinds };

  // Whether waits in this step are measured. Call it once in each step, before them.
  void begin_step(uint64_t step) {
    measures_ = step >= next_;
    if (!measures_) return;
    const double now = now_s();
    // Each wait stands for those of the steps since the last one that was measured.
    weight_ = last_s_ > 0 && step > last_ ? static_cast<double>(step - last_) : 1;
    next_ = step + (now - last_s_ < kShortStep * weight_ ? kSampled : 1);
    last_ = step;
    last_s_ = now;
  }
  // Calls wait() and records its duration.
  template <class F>
  void record(Kind kind, F wait) {
    if (!measures_) return wait();
    const double begin = now_s();
    wait();
    seconds_[kind] += weight_ * (now_s() - begin);
  }
  double seconds(Kind kind) const { return seconds_[kind]; }

 private:
  static constexpr double kShortStep = 2e-5;  // s: of shorter steps, one of kSampled is measured
  static constexpr uint64_t kSampled = 32;
  bool measures_ = false;
  uint64_t next_ = 0, last_ = 0;
  double last_s_ = 0, weight_ = 1;
  double seconds_[kinds] = {};
};

}  // namespace dpt
