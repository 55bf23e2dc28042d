// Waiting for a 32-bit word in shared memory to change: first spinning, then sleeping in the
// kernel. Uses shared (not FUTEX_PRIVATE_FLAG) futexes, so it works across processes.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <climits>
#include <cstdint>
#include <ctime>
#include <limits>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace dpt {

struct WaitPolicy {
  double spin_us = 80;  // 0: sleep at once, when there are more workers than cores
  double timeout_s = std::numeric_limits<double>::infinity();  // after this the wait is late
};

namespace futex {

inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

inline void sleep_while(std::atomic<uint32_t>& word, uint32_t value, double seconds) {
  const double bounded = std::clamp(seconds, 0.0, 1e6);
  const auto whole = static_cast<time_t>(bounded);
  const timespec limit{.tv_sec = whole,
                       .tv_nsec = static_cast<long>((bounded - static_cast<double>(whole)) * 1e9)};
  syscall(SYS_futex, &word, FUTEX_WAIT, value, &limit, nullptr, 0);
}

inline void wake_all(std::atomic<uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

// Waits until done(word) and returns the last value seen; if it is not done, the wait was late.
// Whoever changes the word must then call wake_all() if `sleepers` is not 0, both with sequential
// consistency. So either it sees the sleeper, or the sleeper's system call sees the change.
template <class Done>
uint32_t wait(std::atomic<uint32_t>& word, std::atomic<uint32_t>& sleepers,
              const WaitPolicy& policy, Done done) {
  using Clock = std::chrono::steady_clock;
  using Seconds = std::chrono::duration<double>;
  constexpr int kGlances = 32;  // loads of the word per look at the clock
  uint32_t now = word.load(std::memory_order_acquire);
  if (done(now)) return now;
  const Seconds spin(policy.spin_us * 1e-6), limit(policy.timeout_s);
  const Clock::time_point start = Clock::now();
  for (Seconds waited(0); waited < spin; waited = Clock::now() - start)
    for (int i = 0; i < kGlances; ++i, relax())
      if (done(now = word.load(std::memory_order_acquire))) return now;

  sleepers.fetch_add(1, std::memory_order_seq_cst);
  while (!done(now = word.load(std::memory_order_acquire))) {
    const Seconds left = limit - (Clock::now() - start);
    if (left.count() <= 0) break;
    sleep_while(word, now, left.count());
  }
  sleepers.fetch_sub(1, std::memory_order_relaxed);
  return now;
}

}  // namespace futex
}  // namespace dpt
