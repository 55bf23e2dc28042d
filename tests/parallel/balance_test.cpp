#include "parallel/balance.h"

#include <algorithm>
#include <cstdint>

#include <doctest/doctest.h>

#include "base/error.h"

namespace dpt {
namespace {

double worst_of(const std::vector<double>& cost, const std::vector<int>& part) {
  std::vector<double> sum(cost.size());
  for (size_t i = 0; i < cost.size(); ++i) sum[static_cast<size_t>(part[i])] += cost[i];
  return *std::ranges::max_element(sum);
}

// The least that the most expensive part can cost, by trying every cut.
double least(const std::vector<double>& cost, size_t from, int parts) {
  double sum = 0, best = 1e300;
  if (parts == 1) {
    for (size_t i = from; i < cost.size(); ++i) sum += cost[i];
    return sum;
  }
  for (size_t end = from + 1; end + static_cast<size_t>(parts) - 1 <= cost.size(); ++end) {
    sum += cost[end - 1];
    best = std::min(best, std::max(sum, least(cost, end, parts - 1)));
  }
  return best;
}

TEST_CASE("a chain is cut so that its most expensive part costs as little as can be") {
  CHECK(balance({1, 1, 1, 1}, 2) == std::vector<int>{0, 0, 1, 1});
  CHECK(balance({5, 1, 1, 1}, 2) == std::vector<int>{0, 1, 1, 1});
  CHECK(balance({0, 9, 0, 9, 0}, 2) == std::vector<int>{0, 0, 0, 1, 1});
  CHECK(balance({3}, 1) == std::vector<int>{0});
  CHECK_THROWS_AS(balance({1, 2}, 3), Error);
  CHECK_THROWS_AS(balance({1}, 0), Error);
  uint64_t state = 1;
  for (int round = 0; round < 200; ++round) {
    std::vector<double> cost(1 + static_cast<size_t>(round % 9));
    for (double& c : cost) {
      state = state * 6364136223846793005U + 1442695040888963407U;
      c = static_cast<double>(state >> 60);
    }
    for (int parts = 1; parts <= static_cast<int>(cost.size()) && parts <= 4; ++parts) {
      const std::vector<int> part = balance(cost, parts);
      CHECK(part.front() == 0);
      CHECK(part.back() == parts - 1);  // none is empty, since they rise by one at most
      for (size_t i = 1; i < part.size(); ++i)
        CHECK((part[i] == part[i - 1] || part[i] == part[i - 1] + 1));
      CHECK(worst_of(cost, part) == least(cost, 0, parts));
    }
  }
}

}  // namespace
}  // namespace dpt
