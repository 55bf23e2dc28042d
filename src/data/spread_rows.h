// Some of many rows, for checks before training.
#pragma once

#include <algorithm>
#include <cstddef>
#include <random>
#include <vector>

namespace dpt {

// At most `most` of `size` rows, ascending: a random one from each of equal ranges. A regular step
// could meet only one of two kinds that alternate. The same in each call.
inline std::vector<size_t> spread_rows(size_t size, size_t most) {
  const size_t count = std::min(size, most);
  std::mt19937_64 random(1);
  std::vector<size_t> out(count);
  for (size_t i = 0; i < count; ++i) {
    const size_t begin = i * size / count, end = (i + 1) * size / count;
    out[i] = begin + random() % (end - begin);
  }
  return out;
}

}  // namespace dpt
