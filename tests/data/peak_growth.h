// How much memory a call takes at its peak.
#pragma once

#include <cstddef>
#include <fstream>
#include <utility>

#include <doctest/doctest.h>
#include <malloc.h>

#include "base/machine.h"
#include "base/units.h"
#include "sanitizers.h"

namespace dpt {

// ThreadSanitizer keeps at least four shadow bytes for every byte.
inline constexpr size_t kSanitizerFactor = kThreadSanitized ? 6 : 1;
// What a hostile file may cost.
inline constexpr size_t kHostileBytes = kSanitizerFactor * 64 * kMiB;

// By how many bytes the memory that this process occupies grows at most while f() runs: pages that
// are touched, not address space. Without AddressSanitizer's shadow, a byte for every eight.
template <class F>
size_t peak_growth(F&& f) {
#ifdef __GLIBC__
  malloc_trim(0);  // what is free already would hide some of the growth
#endif
  std::ofstream("/proc/self/clear_refs") << "5" << std::flush;  // the peak is what there is now
  const size_t before = memory_use().resident;
  std::forward<F>(f)();
  const size_t peak = memory_use().peak;
  REQUIRE(before > 0);
  const size_t grown = peak > before ? peak - before : 0;
  return kSanitized ? grown / 9 * 8 : grown;
}

}  // namespace dpt
