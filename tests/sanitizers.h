// Which sanitizers are active: tests then make fewer rounds of the same, or allow more memory.
#pragma once

namespace dpt {

// kSanitized: AddressSanitizer, which is about ten times slower.
#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kSanitized = true, kThreadSanitized = false;
#elif defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = false, kThreadSanitized = true;
#elif defined(__has_feature)
inline constexpr bool kSanitized = __has_feature(address_sanitizer);
inline constexpr bool kThreadSanitized = __has_feature(thread_sanitizer);
#else
inline constexpr bool kSanitized = false, kThreadSanitized = false;
#endif

}  // namespace dpt
