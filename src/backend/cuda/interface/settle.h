// Waits for a library call that continues after it has returned, as NCCL's calls do.
#pragma once

#include <chrono>
#include <exception>
#include <thread>

#include "backend/cuda/interface/device_api.h"

namespace dpt::cuda {

// Seconds in which an abandoned call should end, so that nothing continues after the error.
inline constexpr double kSettleGrace = 1;

struct SteadyTime {
  double now() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }
  void yield() const { std::this_thread::yield(); }
  void sleep(double seconds) const {
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  }
};

// Returns when in_progress() is false. Calls `waiting` between two checks; if it throws, the call
// is abandoned: it gets kSettleGrace seconds to end, then the exception is rethrown. An exception
// of in_progress() is passed on at once, unless the call was abandoned.
template <class InProgress, class Time = SteadyTime>
void settle(InProgress in_progress, const WhileWaiting& waiting, const Time& time = {}) {
  // Most calls take some microseconds, which is shorter than a sleep.
  constexpr double kYields = 200e-6, kSleep = 50e-6;
  const double begin = time.now();
  std::exception_ptr given_up;
  for (double until = 0;;) {
    bool goes_on = false;
    try {
      goes_on = in_progress();
    } catch (...) {
      if (!given_up) throw;
    }
    const double waited = time.now() - begin;
    if (given_up && (!goes_on || waited > until)) std::rethrow_exception(given_up);
    if (!goes_on) return;
    try {
      if (waiting && !given_up) waiting(waited);
    } catch (...) {
      given_up = std::current_exception();
      until = waited + kSettleGrace;
    }
    waited < kYields ? time.yield() : time.sleep(kSleep);
  }
}

}  // namespace dpt::cuda
