// Finds samples that a training run could not use.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/dataset.h"

namespace dpt {

struct SampleReport {
  std::vector<std::string>
      problems;         // a line for each broken sample; the last one may count others
  int64_t read = 0;     // samples that were read one by one; 0: they lie in memory
  int64_t broken = 0;   // of these, those that could not be decoded
  std::string remarks;  // SampleReader::remarks() of these
};

// Looks for numbers that are not finite in all samples in memory, and decodes samples that are read
// one by one: at most `most_decoded`, evenly spread. set: "training", for messages. Sets that were
// not made (Dataset::made) have no problems.
SampleReport check_samples(const Dataset& dataset, std::string_view set, int64_t most_decoded);

}  // namespace dpt
