// How much memory a call takes at its peak.
#pragma once

#include <cstddef>
#include <fstream>
#include <utility>

#include <doctest/doctest.h>
#include <malloc.h>

#include "base/machine.h"
#include "base/units.h"

namespace dpt {

// What a hostile file may cost. ThreadSanitizer keeps four bytes and more about each.
#if defined(__SANITIZE_THREAD__)
inline constexpr size_t kSanitizerFactor = 6;
#elif defined(__has_feature)
inline constexpr size_t kSanitizerFactor = __has_feature(thread_sanitizer) ? 6 : 1;
#else
inline constexpr size_t kSanitizerFactor = 1;
#endif
inline constexpr size_t kHostileBytes = kSanitizerFactor * 64 * kMiB;

// By how many bytes the memory that this process occupies grows at most while f() runs: pages that
// are touched, not address space, so it holds under sanitizers, too, which take an eighth more.
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
  return peak > before ? peak - before : 0;
}

}  // namespace dpt
