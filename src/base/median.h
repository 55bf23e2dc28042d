// The median of measurements.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace dpt {

// Of an even number of values, the mean of the middle two. REQUIRES: there are values.
inline double median(std::vector<double> x) {
  std::ranges::sort(x);
  const size_t n = x.size();
  return n % 2 == 1 ? x[n / 2] : (x[n / 2 - 1] + x[n / 2]) / 2;
}

}  // namespace dpt
