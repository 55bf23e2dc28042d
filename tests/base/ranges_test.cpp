#include "base/ranges.h"

#include <set>
#include <vector>

#include <doctest/doctest.h>

namespace dpt {
namespace {

TEST_CASE("ranges are the set of their numbers, whatever is added in which order") {
  uint32_t state = 1;
  const auto draw = [&](uint32_t n) {
    state = state * 1664525 + 1013904223;
    return (state >> 16) % n;
  };
  for (int round = 0; round < 200; ++round) {
    Ranges ranges;
    std::set<size_t> numbers;
    for (int i = 0; i < 8; ++i) {
      const size_t begin = draw(30), end = begin + draw(8);
      std::set<size_t> missing, gaps;
      for (size_t n = begin; n < end; ++n)
        if (!numbers.contains(n)) missing.insert(n);
      ranges.each_gap(begin, end, [&](size_t from, size_t to) {
        for (size_t n = from; n < to; ++n) gaps.insert(n);
      });
      CHECK(gaps == missing);
      CHECK(ranges.add(begin, end) == missing.size());
      numbers.insert(missing.begin(), missing.end());
    }
  }
}

TEST_CASE("what two ranges share") {
  CHECK(overlap(0, 10, 5, 20) == 5);
  CHECK(overlap(5, 20, 0, 10) == 5);
  CHECK(overlap(0, 5, 5, 10) == 0);
  CHECK(overlap(0, 2, 5, 10) == 0);
}

}  // namespace
}  // namespace dpt
