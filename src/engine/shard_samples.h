// The samples of adjacent shards in a micro-batch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "data/drawn_samples.h"
#include "session/batch_partitioner.h"

namespace dpt {

using MicroBatch = std::vector<ShardRows>;  // [shards]

// The samples of `shards`, whose rows are adjacent in `order`.
inline DrawnSamples samples_of(const MicroBatch& micro, Rows shards, DrawnSamples order) {
  const int64_t begin = micro[static_cast<size_t>(shards.begin)].rows.begin;
  const int64_t end = micro[static_cast<size_t>(shards.end - 1)].rows.end;
  return order.subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin));
}

}  // namespace dpt
