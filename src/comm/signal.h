// Signal: one worker counts its progress, others wait for a count. For threads of one or several
// processes, in shared memory.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/units.h"
#include "comm/barrier.h"

namespace dpt {

// All zero bytes are a fresh signal. What the worker wrote before it posted, those who waited for
// that see. Once broken, it stays so. Counts go round at 2^31; who waits is less than half of that
// behind or ahead.
class alignas(kDestructiveInterference) Signal {
 public:
  void post() noexcept;

  // Waits until there were `count` posts. broken: break_up() was called first.
  WaitResult wait(uint32_t count, const WaitPolicy& policy) noexcept;

  // Wakes all current and future waiters. Any thread may call it, also in a signal handler.
  void break_up() noexcept;

 private:
  std::atomic<uint32_t> word_ = 0;  // + 2 per post; + 1: broken
  std::atomic<uint32_t> sleepers_ = 0;
};

}  // namespace dpt
