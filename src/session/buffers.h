// The layout of the memory that the workers of a machine share: weights, optimizer states, a
// gradient buffer for each of its shards, activations, and small results of all shards. All ranks
// of a machine map the same memory. If replicas own their weights (Topology::replicas_own_weights),
// each has weights, states and norm partials, and Buffers refers to those of one replica: the
// first, unless of_replica() names another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "backend/cpu/simd/simd.h"
#include "base/units.h"

namespace dpt {

// What one shard brought in a step, or in an evaluation. A cache line each: owners write at once.
struct alignas(kCacheLine) ShardResult {
  double loss = 0;     // its share: terms / divisor
  double weight = 0;   // its share of the divisor
  double correct = 0;  // samples classified right
};

// Where a number that is not finite came from; a later (smaller) instruction of a lower shard wins.
struct alignas(kCacheLine) NonFinite {
  int64_t instruction =
      -1;  // of the forward part, counted over prologue, forward and loss; -1: none found
  int64_t parameter =
      -1;  // graph.parameters whose values were not finite before the step; -1: none
  // Samples of the training set, the first in the batch, whose values are not finite; -1: none.
  int64_t input = -1, target = -1;
};

// Size of Buffers::window(): elements of workers' own optimizer states that are exchanged at once.
inline constexpr size_t kStateWindow = 16384;

// Shards [first, first + count).
struct ShardRange {
  int first = 0, count = 0;
};

class Buffers {
 public:
  struct Sizes {
    size_t weights = 0;    // elements
    size_t stored = 0;     // elements of each gradient buffer
    size_t halved = 0;     // elements of each shard's gradients that are also stored as halves
    size_t trainable = 0;  // elements of each state buffer
    int states = 0;
    int replicas = 1;  // that own their weights; 1: there is one copy
    int shards = 1;
    // Whose gradients are stored here: with several hosts, those of this host.
    std::optional<ShardRange> own_shards = {};  // empty: all
    size_t sums = 0;         // bytes per shard, for sync points (program.h, Note [sync points])
    size_t activations = 0;  // bytes of all arenas
    size_t window = 0;       // elements of window()
    size_t metrics = 0;      // elements of each metrics()
    size_t measures = 0;     // elements of measures()
    size_t staging = 0;      // bytes of staging()
  };
  static size_t bytes(const Sizes& sizes);

  // Does not own `memory`. REQUIRES: it is zeroed, has bytes(sizes) bytes, and is aligned to 64.
  Buffers(std::byte* memory, const Sizes& sizes);

  // The same memory, with the weights, states and norm partials of another replica. REQUIRES: these
  // buffers are those of the first.
  Buffers of_replica(int replica) const;
  // Copies the first replica's weights and states to the others. REQUIRES: as of_replica().
  void copy_to_replicas() const;

  const Sizes& sizes() const { return sizes_; }
  float* weights() const { return weights_; }
  float* state(int i) const { return states_ + static_cast<size_t>(i) * stride_; }
  // REQUIRES: one of own_shards().
  float* gradient(int shard) const {
    return gradients_ + static_cast<size_t>(shard - first_own_) * gradient_stride_;
  }
  uint16_t* halves(int shard) const {
    return halves_ + static_cast<size_t>(shard - first_own_) * half_stride_;
  }
  ShardRange own_shards() const { return sizes_.own_shards.value_or(ShardRange{0, sizes_.shards}); }
  // Elements between the gradient buffers of consecutive shards.
  size_t gradient_stride() const { return gradient_stride_; }
  std::byte* sums(int shard) const { return sums_ + static_cast<size_t>(shard) * sum_stride_; }
  size_t sum_stride() const { return sum_stride_; }  // bytes
  // There are two sets, for even and odd steps: one is read while the next step writes the other.
  ShardResult& result(uint64_t step, int shard) const {
    return results_[(step % 2) * static_cast<size_t>(sizes_.shards) + static_cast<size_t>(shard)];
  }
  ShardResult& evaluation(int shard) const { return evaluations_[shard]; }
  // What the shard adds to the metrics of an evaluation (session/evaluation_metrics.h).
  std::span<double> metrics(int shard) const {
    return {metrics_ + static_cast<size_t>(shard) * metrics_stride_, sizes_.metrics};
  }
  NonFinite& non_finite(int shard) const { return non_finites_[shard]; }
  std::byte* activations() const { return activations_; }
  std::span<float> window() const { return {window_, sizes_.window}; }
  double* squares() const { return squares_; }  // one partial sum per chunk of gradients
  // What arrives of other hosts' gradients (session/host_layout.h).
  std::byte* staging() const { return staging_; }
  // What is measured of the gradients (engine/cpu/gradient_meter.h).
  std::span<double> measures() const { return {measures_, sizes_.measures}; }

  static constexpr size_t kChunk = kSquareChunk;  // gradient elements per partial sum
  size_t chunks() const { return (sizes_.stored + kChunk - 1) / kChunk; }

 private:
  Sizes sizes_;
  size_t bytes_ = 0;
  size_t stride_ = 0, gradient_stride_ = 0, half_stride_ = 0, sum_stride_ = 0, metrics_stride_ = 0;
  size_t weight_stride_ = 0, squares_stride_ = 0;  // elements from one replica's to the next
  float *weights_, *states_, *gradients_, *window_;
  uint16_t* halves_;
  ShardResult *results_, *evaluations_;
  NonFinite* non_finites_;
  double *squares_, *metrics_, *measures_;
  std::byte *sums_, *activations_, *staging_;
  int first_own_ = 0;
};

}  // namespace dpt
