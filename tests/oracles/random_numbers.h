// Numbers and words that random specs draw, the same on every machine.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace dpt {

class RandomNumbers {
 public:
  using Words = std::vector<std::string>;

  explicit RandomNumbers(uint64_t seed) : random_(seed) {}

  // Not std's distributions: each library has its own.
  int64_t between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random_() % static_cast<uint64_t>(high - low + 1));
  }
  bool chance(int percent) { return between(1, 100) <= percent; }
  std::string one_of(const Words& words) {
    return words[static_cast<size_t>(between(0, std::ssize(words) - 1))];
  }
  std::string maybe(int percent, const std::string& text) { return chance(percent) ? text : ""; }
  double part(int64_t low, int64_t high) { return static_cast<double>(between(low, high)) / 100; }
  std::string list(int64_t count) {
    std::vector<double> out;
    for (int64_t i = 0; i < count; ++i) out.push_back(part(20, 300));
    return fmt::format("[{}]", fmt::join(out, ", "));
  }

 private:
  std::mt19937_64 random_;
};

}  // namespace dpt
