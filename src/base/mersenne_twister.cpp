#include "base/mersenne_twister.h"

#include <algorithm>

namespace dpt {
namespace {

constexpr size_t kFar = 397;

uint32_t twist(uint32_t word, uint32_t next, uint32_t far) {
  const uint32_t y = (word & 0x80000000U) | (next & 0x7fffffffU);
  return far ^ (y >> 1) ^ ((0 - (y & 1)) & 0x9908b0dfU);
}

}  // namespace

MersenneTwister::MersenneTwister(uint32_t seed) : index_(kWords) {
  words_[0] = seed;
  for (uint32_t i = 1; i < kWords; ++i)
    words_[i] = 1812433253U * (words_[i - 1] ^ (words_[i - 1] >> 30)) + i;
  temper();
}

MersenneTwister::MersenneTwister(const Words& words, size_t index) : words_(words), index_(index) {
  temper();
}

std::span<const uint32_t> MersenneTwister::next_words(size_t most) {
  if (index_ == kWords) renew();
  const size_t count = std::min(most, kWords - index_);
  index_ += count;
  return {&drawn_[index_ - count], count};
}

// Two loops instead of one with a modulo, so that compilers vectorize them.
void MersenneTwister::renew() {
  uint32_t* const w = words_.data();
  for (size_t i = 0; i < kWords - kFar; ++i) w[i] = twist(w[i], w[i + 1], w[i + kFar]);
  for (size_t i = kWords - kFar; i + 1 < kWords; ++i)
    w[i] = twist(w[i], w[i + 1], w[i + kFar - kWords]);
  w[kWords - 1] = twist(w[kWords - 1], w[0], w[kFar - 1]);
  temper();
  index_ = 0;
}

void MersenneTwister::temper() {
  for (size_t i = 0; i < kWords; ++i) {
    uint32_t y = words_[i];
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680U;
    y ^= (y << 15) & 0xefc60000U;
    drawn_[i] = y ^ (y >> 18);
  }
}

}  // namespace dpt
