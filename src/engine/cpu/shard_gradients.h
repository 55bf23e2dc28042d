// The stored gradients of a step: one buffer per shard, which backward passes write, and their sum
// over shards.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "engine/compressed.h"
#include "engine/cpu/host_gradients.h"
#include "engine/cpu/worker.h"
#include "engine/shard_samples.h"
#include "session/update_partition.h"

namespace dpt {

// Thread: the worker's. REQUIRES: the worker outlives it.
class ShardGradients {
 public:
  explicit ShardGradients(const CpuWorker& worker);

  void begin_step() { summed_ = false; }
  // After a backward pass of the step's first micro-batch: zeroes the gradients of the group's
  // shards without samples, which the pass did not write. stage: of one stage.
  void clear_empty(int group, const MicroBatch& first) const;
  void clear_empty(int group, const MicroBatch& first, int stage) const;
  // With `compress`: rounds the group's gradients of this worker's stages to halves, which other
  // workers read. bucket: only that one; -1: all.
  void compress(int group, int bucket = -1) const;

  // With several hosts: sums this worker's range of a bucket over the parts that this host sends.
  void sum_own(size_t bucket);
  // With several hosts: completes the sum of this worker's share of a bucket before the update.
  void sum_parts(size_t bucket);

  // Writes the sum over shards in `range` to the first shard's buffer. From then on, until the next
  // begin_step(), the first shard's buffer counts as the sum. All workers with whom this one shares
  // the update sum ranges of their own.
  void sum(UpdateRange range);
  float* total() const {
    if (hosts_) return hosts_->total();
    return worker_.buffers.gradient(static_cast<int>(worker_.summed_shards.begin));
  }

  // How the update reads gradients: calls f(first element, end, buffers to add up, index of their
  // first element) for consecutive ranges of a piece of the worker's share.
  template <class F>
  void each_range(const UpdatePiece& piece, F f) {
    const size_t begin = piece.begin, end = piece.end;
    if (hosts_) {
      const float* const sum = hosts_->total();
      for (size_t at = begin, to = 0; at < end; at = to) {
        to = std::min(end, at + HostGradients::kTile);
        if (!summed_) hosts_->complete({at, to}, static_cast<size_t>(piece.bucket));
        f(at, to, std::span(&sum, 1), size_t{0});
      }
      return;
    }
    watch({begin, end});
    if (!compressed_ || summed_)
      return f(begin, end, std::span(shards_).first(summed_ ? 1 : shards_.size()), size_t{0});
    float* const tile = compressed_->tile();
    const float* const sum = tile;
    for (size_t at = begin, to = 0; at < end; at = to) {
      to = std::min(end, at + CompressedGradients::kTile);
      compressed_->sum({at, to}, tile);
      f(at, to, std::span(&sum, 1), at);
    }
  }

 private:
  void watch(UpdateRange range) const;  // reports to tests that the gradients in `range` are read
  void clear_empty(int group, const MicroBatch& first, UpdateRange range) const;

  const CpuWorker& worker_;
  std::vector<const float*> shards_;                    // gradients of worker_.summed_shards
  std::vector<std::vector<UpdateRange>> stage_stored_;  // [stages] stored gradients of each
  std::optional<CompressedGradients> compressed_;       // empty: gradients are read in f32
  std::optional<HostGradients> hosts_;                  // empty: one host
  bool summed_ = false;
};

}  // namespace dpt
