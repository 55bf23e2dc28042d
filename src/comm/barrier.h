// A barrier for threads of one or several processes, in shared memory.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/units.h"
#include "comm/futex.h"

namespace dpt {

// Result of waiting. late: the time limit has passed.
enum class WaitResult { done, broken, late };

// Zero-filled memory is a valid new barrier. After arrive_and_wait(), every worker sees what all
// workers wrote before their calls. Once broken, a barrier stays broken. A worker that gets `late`
// stays counted as arrived.
struct Barrier {
  // Waits until `workers` calls have arrived. broken: break_up() was called first.
  WaitResult arrive_and_wait(uint32_t workers, const WaitPolicy& policy) noexcept;

  // Wakes all current and future waiters. Any thread may call it, also in a signal handler.
  void break_up() noexcept;

 private:
  WaitResult wait(uint32_t before, const WaitPolicy& policy) noexcept;

  // Two pairs of cache lines, as the hardware fetches lines in pairs: who comes writes the first,
  // who waits reads the second, to which a barrier adds 2, and a break 1.
  alignas(kDestructiveInterference) std::atomic<uint32_t> arrived_ = 0;
  alignas(kDestructiveInterference) std::atomic<uint32_t> round_ = 0;
  std::atomic<uint32_t> sleepers_ = 0;
};

static_assert(std::atomic<uint32_t>::is_always_lock_free, "processes share no lock table");

}  // namespace dpt
