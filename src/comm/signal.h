// Signal: one worker says how far it is, others wait until it is so far; threads or processes, in
// shared memory.
#pragma once

#include <atomic>
#include <cstdint>

#include "comm/barrier.h"

namespace dpt {

// All zero bytes are a fresh signal. What the worker wrote before it posted, those who waited for
// that see. Once broken, it stays so. Counts go round at 2^31; who waits is less than half of that
// behind or ahead.
class alignas(128) Signal {
 public:
  void post() noexcept;

  // Until there have been `count` posts. broken: break_up() was called before.
  Meeting wait(uint32_t count, const Patience& patience) noexcept;

  // Wakes all that wait here, now or later. May be called by anyone, also in a signal handler.
  void break_up() noexcept;

 private:
  std::atomic<uint32_t> word_ = 0;  // + 2 for each post; + 1: broken
  std::atomic<uint32_t> sleepers_ = 0;
};

}  // namespace dpt
