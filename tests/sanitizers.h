// Which sanitizers look on, for tests that make fewer rounds of the same, or expect more memory.
#pragma once

namespace dpt {

// kSanitized: AddressSanitizer, at some ten times the cost.
#if defined(__has_feature)
inline constexpr bool kSanitized = __has_feature(address_sanitizer);
inline constexpr bool kThreadSanitized = __has_feature(thread_sanitizer);
#elif defined(__SANITIZE_ADDRESS__)
inline constexpr bool kSanitized = true, kThreadSanitized = false;
#elif defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = false, kThreadSanitized = true;
#else
inline constexpr bool kSanitized = false, kThreadSanitized = false;
#endif

}  // namespace dpt
