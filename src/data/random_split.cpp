#include "data/random_split.h"

#include <algorithm>
#include <cmath>

#include "base/generator.h"

namespace dpt {

RandomSplit random_split(int64_t samples, double fraction, uint64_t seed) {
  const auto n = static_cast<double>(samples);
  auto train = static_cast<int64_t>(std::floor(n * (1 - fraction)));
  const auto validation = static_cast<int64_t>(std::floor(n * fraction));
  train += (samples - train - validation + 1) / 2;  // PyTorch deals what is left in turns
  std::vector<uint32_t> order(static_cast<size_t>(samples));
  Generator(seed).randperm(order);
  const auto middle = order.begin() + static_cast<std::ptrdiff_t>(std::min(train, samples));
  return {.train = {order.begin(), middle}, .validation = {middle, order.end()}};
}

}  // namespace dpt
