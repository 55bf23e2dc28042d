// The median of measurements.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace dpt {

// The mean of the middle two for an even number of values. REQUIRES: there are values.
inline double median(std::vector<double> x) {
  std::ranges::sort(x);
  const size_t n = x.size();
  return n % 2 == 1 ? x[n / 2] : (x[n / 2 - 1] + x[n / 2]) / 2;
}

}  // namespace dpt
