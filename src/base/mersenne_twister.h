// The Mersenne Twister MT19937, the same words as std::mt19937, several times as fast where many
// are drawn. Source: M. Matsumoto, T. Nishimura, "Mersenne Twister", ACM TOMACS 8 (1998).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace dpt {

// Not thread-safe.
class MersenneTwister {
 public:
  static constexpr size_t kWords = 624;
  using Words = std::array<uint32_t, kWords>;

  explicit MersenneTwister(uint32_t seed);
  // The state that words() and index() returned. REQUIRES: index <= kWords.
  MersenneTwister(const Words& words, size_t index);

  uint32_t next() {
    if (index_ == kWords) renew();
    return drawn_[index_++];
  }
  // Draws 1 to `most` words: as many as there are before the state has to be renewed. They stay
  // valid until the next call.
  std::span<const uint32_t> next_words(size_t most);

  // The state: its words, and how many of them were drawn.
  const Words& words() const { return words_; }
  size_t index() const { return index_; }

 private:
  void renew();
  void temper();

  Words words_;
  Words drawn_;  // words_, tempered
  size_t index_;
};

}  // namespace dpt
