#include "parallel/balance.h"

#include <algorithm>
#include <limits>

#include "base/error.h"

namespace dpt {

std::vector<int> balance(const std::vector<double>& cost, int parts) {
  const size_t n = cost.size(), k = static_cast<size_t>(parts);
  require(parts >= 1 && k <= n, "a part has at least one link");
  std::vector<double> sum(n + 1);
  for (size_t i = 0; i < n; ++i) sum[i + 1] = sum[i] + cost[i];
  // worst[p][i]: cost of the most expensive part if links i... are split into p + 1 parts.
  // next[p][i]: end of the first of these parts.
  constexpr double kNone = std::numeric_limits<double>::infinity();
  std::vector worst(k, std::vector<double>(n + 1, kNone));
  std::vector next(k, std::vector<size_t>(n + 1, n));
  for (size_t i = 0; i < n; ++i) worst[0][i] = sum[n] - sum[i];
  for (size_t p = 1; p < k; ++p)
    for (size_t i = 0; i + p < n; ++i)
      for (size_t end = i + 1; end + p <= n; ++end) {
        const double w = std::max(sum[end] - sum[i], worst[p - 1][end]);
        if (w <= worst[p][i]) worst[p][i] = w, next[p][i] = end;
      }
  std::vector<int> out(n);
  size_t at = 0;
  for (size_t p = k; p-- > 0;) {
    const size_t end = p == 0 ? n : next[p][at];
    std::fill(out.begin() + static_cast<std::ptrdiff_t>(at),
              out.begin() + static_cast<std::ptrdiff_t>(end), static_cast<int>(k - 1 - p));
    at = end;
  }
  return out;
}

}  // namespace dpt
