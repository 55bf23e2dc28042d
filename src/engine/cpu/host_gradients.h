// Gradient sums over the shards of several hosts (machines): the subtrees that a host sums by
// itself, and the sum over all hosts for the elements that it owns. See parallel/host_sums.h.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "base/tensor.h"
#include "session/buffers.h"
#include "session/host_layout.h"
#include "session/session.h"
#include "session/update_partition.h"

namespace dpt {

// Belongs to one worker. Thread: that worker's. REQUIRES: the session outlives it.
class HostGradients {
 public:
  static constexpr size_t kTile = 1024;  // elements, few enough for the first-level cache

  HostGradients(const Session& session, const Buffers& buffers);

  // For elements in `range`: writes the sum over each of this host's parts to the gradients of the
  // part's first shard, which leaders send.
  void sum_own(UpdateRange range);
  const ElementOwners& owners() const { return layout_.owners(); }

  // Where the sums over all hosts are: as many elements as gradients, valid for those that this
  // host owns.
  float* total() const { return buffers_.gradient(buffers_.own_shards().first); }
  // Computes total() for `range`, which lies in this host's piece of the bucket. Workers may
  // compute disjoint ranges at once, each range once.
  void complete(UpdateRange range, size_t bucket);

 private:
  void sum_tile(const GradientPart& part, size_t at, size_t count);
  const float* source(size_t part, size_t at, size_t count, size_t bucket);
  float* tile(size_t i) { return tiles_.data() + i * kTile; }

  const Session& session_;
  const Buffers buffers_;
  const HostLayout& layout_;
  const std::optional<DType> half_;    // of `compress`
  std::vector<float> tiles_;           // scratch: a tile for each part, or for each shard
  std::vector<const float*> sources_;  // scratch: of parts, or of shards
};

}  // namespace dpt
