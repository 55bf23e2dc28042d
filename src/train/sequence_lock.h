// A sequence lock: a value that one thread writes often and others read occasionally.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace dpt {

// Writing takes a few nanoseconds and never blocks. Threads: one writes, any may read.
template <class T>
class SequenceLock {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) % sizeof(uint64_t) == 0);

 public:
  SequenceLock() { write({}); }

  void write(const T& value) noexcept {
    const auto words = std::bit_cast<std::array<uint64_t, kWords>>(value);
    const uint64_t version = version_.load(std::memory_order_relaxed);
    version_.store(version + 1, std::memory_order_relaxed);  // odd: a write is in progress
    // Release: a reader that sees any of these words also sees the odd version.
    for (size_t i = 0; i < kWords; ++i) words_[i].store(words[i], std::memory_order_release);
    version_.store(version + 2, std::memory_order_release);
  }

  T read() const noexcept {
    std::array<uint64_t, kWords> words;
    uint64_t before = 0, after = 0;
    do {
      before = version_.load(std::memory_order_acquire);
      for (size_t i = 0; i < kWords; ++i) words[i] = words_[i].load(std::memory_order_acquire);
      after = version_.load(std::memory_order_relaxed);
    } while (before != after || before % 2 != 0);
    return std::bit_cast<T>(words);
  }

 private:
  static constexpr size_t kWords = sizeof(T) / sizeof(uint64_t);
  std::atomic<uint64_t> version_ = 0;
  std::array<std::atomic<uint64_t>, kWords> words_{};
};

}  // namespace dpt
