#include "comm/barrier.h"

#include <algorithm>
#include <chrono>
#include <climits>
#include <ctime>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace dpt {
namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

constexpr uint32_t kBroken = 1, kNext = 2;

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

void sleep_while(std::atomic<uint32_t>& word, uint32_t value, double seconds) {
  const double bounded = std::clamp(seconds, 0.0, 1e6);
  const auto whole = static_cast<time_t>(bounded);
  const timespec limit{.tv_sec = whole,
                       .tv_nsec = static_cast<long>((bounded - static_cast<double>(whole)) * 1e9)};
  syscall(SYS_futex, &word, FUTEX_WAIT, value, &limit, nullptr, 0);
}

void wake_all(std::atomic<uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

// A meeting that was complete counts, even if the barrier was broken right after it.
Meeting outcome(uint32_t before, uint32_t now) {
  return (now & ~kBroken) == before ? Meeting::broken : Meeting::met;
}

}  // namespace

Meeting Barrier::meet(uint32_t workers, const Patience& patience) noexcept {
  const uint32_t before = round_.load(std::memory_order_acquire);
  if ((before & kBroken) != 0) return Meeting::broken;
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 != workers)
    return wait(before, patience);
  arrived_.store(0, std::memory_order_relaxed);
  // Either this sees the sleeper, or the sleeper's kernel call sees the new round.
  round_.fetch_add(kNext, std::memory_order_seq_cst);
  if (sleepers_.load(std::memory_order_seq_cst) != 0) wake_all(round_);
  return Meeting::met;
}

Meeting Barrier::wait(uint32_t before, const Patience& patience) noexcept {
  uint32_t now = before;
  const auto moved = [&] { return (now = round_.load(std::memory_order_acquire)) != before; };
  constexpr int kGlances = 32;  // one look at the clock for so many at the round
  const Seconds spin(patience.spin_us * 1e-6), limit(patience.timeout_s);
  const Clock::time_point start = Clock::now();
  for (Seconds waited(0); waited < spin; waited = Clock::now() - start)
    for (int i = 0; i < kGlances; ++i, relax())
      if (moved()) return outcome(before, now);

  sleepers_.fetch_add(1, std::memory_order_seq_cst);
  while (!moved()) {
    const Seconds left = limit - (Clock::now() - start);
    if (left.count() <= 0) break;
    sleep_while(round_, before, left.count());
  }
  sleepers_.fetch_sub(1, std::memory_order_relaxed);
  return now == before ? Meeting::late : outcome(before, now);
}

void Barrier::break_up() noexcept {
  round_.fetch_or(kBroken, std::memory_order_seq_cst);
  wake_all(round_);
}

}  // namespace dpt
