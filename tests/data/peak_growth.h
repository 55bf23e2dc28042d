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

// ThreadSanitizer keeps four bytes and more about each byte, AddressSanitizer one about eight, and
// what is freed stays for a while.
#if defined(__has_feature)
inline constexpr bool kThreadSanitizer = __has_feature(thread_sanitizer);
inline constexpr bool kAddressSanitizer = __has_feature(address_sanitizer);
#elif defined(__SANITIZE_THREAD__)
inline constexpr bool kThreadSanitizer = true, kAddressSanitizer = false;
#elif defined(__SANITIZE_ADDRESS__)
inline constexpr bool kThreadSanitizer = false, kAddressSanitizer = true;
#else
inline constexpr bool kThreadSanitizer = false, kAddressSanitizer = false;
#endif
inline constexpr size_t kSanitizerFactor = kThreadSanitizer ? 6 : 1;
// What a hostile file may cost.
inline constexpr size_t kHostileBytes = kSanitizerFactor * 64 * kMiB;

// By how many bytes the memory that this process occupies grows at most while f() runs: pages that
// are touched, not address space. What AddressSanitizer takes for its own is left out.
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
  return kAddressSanitizer ? grown / 9 * 8 : grown;
}

}  // namespace dpt
