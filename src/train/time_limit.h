// Says when `minutes` of training have passed.
#pragma once

#include <cstdint>
#include <optional>

namespace dpt {

// Reads the clock at most once in 64 calls while a limit is far away: that takes longer than the
// smallest steps. Thread: one at a time.
class TimeLimit {
 public:
  // minutes: empty: no limit.
  explicit TimeLimit(std::optional<double> minutes) : minutes_(minutes) {}

  void begin(double now_s) { begun_s_ = looked_s_ = now_s; }
  // now: returns the time in seconds, of the clock of begin().
  template <class Now>
  bool over(Now now) {
    if (!minutes_ || ++calls_ < next_) return false;
    const double limit_s = 60 * *minutes_, now_s = now();
    constexpr int64_t kMost = 64;
    const bool frequent = now_s - looked_s_ < 1e-4 * limit_s;
    every_ = frequent ? (every_ < kMost ? 2 * every_ : kMost) : 1;
    next_ = calls_ + every_;
    looked_s_ = now_s;
    return now_s - begun_s_ >= limit_s;
  }

 private:
  std::optional<double> minutes_;
  double begun_s_ = 0, looked_s_ = 0;
  int64_t calls_ = 0, next_ = 1, every_ = 1;
};

}  // namespace dpt
