// Gradient compression (`compress`): the 16-bit gradients that replicas read from each other, and
// their sum. See parallel/exchange.h.
#pragma once

#include <cstddef>
#include <vector>

#include "base/tensor.h"
#include "session/buffers.h"
#include "session/update_partition.h"

namespace dpt {

// Belongs to one worker. Thread: that worker's.
class CompressedGradients {
 public:
  // Elements summed at a time, few enough to stay in the L1 cache.
  static constexpr size_t kTile = 1024;

  CompressedGradients(DType half, const Buffers& buffers);

  // Rounds the shard's stored gradients in `range` to the 16-bit type and writes the result to
  // Buffers::halves(), where other workers read it.
  void write(int shard, UpdateRange range) const;

  // [kTile] scratch for the result of sum().
  float* tile() { return wide_.data() + tiles_.size() * kTile; }

  // Writes the sum of all shards' 16-bit gradients in `range` to `out` [range.count()]. The sum is
  // computed in f32 in the fixed tree order (comm/tree.h) and then rounded to the 16-bit type, like
  // the result of an all-reduce in that type.
  void sum(UpdateRange range, float* out);

 private:
  DType half_;
  Buffers buffers_;
  // [shards + 1, kTile]: the widened gradients of each shard, then tile().
  std::vector<float> wide_;
  std::vector<const float*> tiles_;
};

}  // namespace dpt
