// The split of a data set into training and validation samples, as torch.utils.data.random_split
// makes it.
#pragma once

#include <cstdint>
#include <vector>

namespace dpt {

struct RandomSplit {
  std::vector<uint32_t> train, validation;  // sample numbers, in PyTorch's order
};

// random_split(dataset, [1 - fraction, fraction], torch.Generator().manual_seed(seed)): both counts
// are rounded down, and of what is left the first sample goes to `train`, the second to
// `validation`. REQUIRES: 0 < fraction < 1; samples <= Generator::kMaxPermutation.
RandomSplit random_split(int64_t samples, double fraction, uint64_t seed);

}  // namespace dpt
