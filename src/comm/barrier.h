// Barrier: where workers wait for each other; threads or processes, in shared memory.
#pragma once

#include <atomic>
#include <cstdint>

#include "comm/futex.h"

namespace dpt {

enum class Meeting { met, broken, late };

// All zero bytes are a fresh barrier. What a worker wrote before it came, all see after the
// meeting. Once broken, it stays so. Late: this worker no longer waits.
struct Barrier {
  // Waits until `workers` calls have come. broken: break_up() was called before all had come.
  Meeting meet(uint32_t workers, const Patience& patience) noexcept;

  // Wakes all that wait here, now or later. May be called by anyone, also in a signal handler.
  void break_up() noexcept;

 private:
  Meeting wait(uint32_t before, const Patience& patience) noexcept;

  // Two pairs of cache lines, as the hardware fetches lines in pairs: who comes writes the first,
  // who waits reads the second.
  alignas(128) std::atomic<uint32_t> arrived_ = 0;
  alignas(128) std::atomic<uint32_t> round_ = 0;  // + 2 for each meeting; + 1: broken
  std::atomic<uint32_t> sleepers_ = 0;
};

static_assert(std::atomic<uint32_t>::is_always_lock_free, "processes share no lock table");

}  // namespace dpt
