#include "base/hash.h"

#include <array>
#include <bit>
#include <cstring>

namespace dpt {

// As XXH64 does: four lanes of 8 bytes each, which are independent multiplications.
uint64_t hash_of(std::span<const std::byte> bytes, uint64_t seed) {
  constexpr uint64_t kFirst = 0x9e3779b185ebca87, kSecond = 0xc2b2ae3d27d4eb4f;
  constexpr size_t kLanes = 4, kWord = sizeof(uint64_t);
  const auto round = [](uint64_t sum, uint64_t word) {
    return std::rotl(sum + word * kSecond, 31) * kFirst;
  };
  std::array<uint64_t, kLanes> sums = {seed + kFirst + kSecond, seed + kSecond, seed,
                                       seed - kFirst};
  std::array<uint64_t, kLanes> words{};
  size_t at = 0;
  for (; at + kLanes * kWord <= bytes.size(); at += kLanes * kWord) {
    std::memcpy(words.data(), bytes.data() + at, kLanes * kWord);
    for (size_t i = 0; i < kLanes; ++i) sums[i] = round(sums[i], words[i]);
  }
  words = {};
  if (at < bytes.size()) std::memcpy(words.data(), bytes.data() + at, bytes.size() - at);
  uint64_t out = bytes.size();
  for (size_t i = 0; i < kLanes; ++i) out = round(round(out, sums[i]), words[i]);
  out = (out ^ (out >> 33)) * kSecond;
  return out ^ (out >> 29);
}

}  // namespace dpt
