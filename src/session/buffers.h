// What the workers of a run share, laid out in one piece of memory: weights, optimizer states, a
// gradient buffer for each shard, activations, and small results. Ranks of one machine map the same
// piece.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "backend/cpu/simd/simd.h"

namespace dpt {

// What one shard brought in a step, or in an evaluation. A cache line each: owners write at once.
struct alignas(64) ShardResult {
  double loss = 0;     // its share: terms / divisor
  double weight = 0;   // its share of the divisor
  double correct = 0;  // samples classified right
};

// Where a number that is not finite came from; a later (smaller) instruction of a lower shard wins.
struct alignas(64) Trouble {
  int64_t instruction =
      -1;  // of the forward part, counted over prologue, forward and loss; -1: none found
  int64_t parameter =
      -1;  // graph.parameters whose values were not finite before the step; -1: none
  // Samples of the training set, the first in the batch, whose values are not finite; -1: none.
  int64_t input = -1, target = -1;
};

// The most elements of Buffers::window(): the piece of own states that is exchanged at a time.
inline constexpr size_t kStateWindow = 16384;

class Buffers {
 public:
  struct Sizes {
    size_t weights = 0;    // elements
    size_t stored = 0;     // elements of each gradient buffer
    size_t halved = 0;     // elements of each shard's gradients that lie there as halves, too
    size_t trainable = 0;  // elements of each state buffer
    int states = 0;
    int shards = 1;
    size_t sums = 0;         // bytes, of each shard: program.h, note [cuts]
    size_t activations = 0;  // bytes, of all arenas
    size_t window = 0;       // elements, of what workers show each other of their own states
  };
  static size_t bytes(const Sizes& sizes);

  // REQUIRES: `memory` is zeroed, holds bytes(sizes), and begins at a multiple of 64.
  Buffers(std::byte* memory, const Sizes& sizes);

  const Sizes& sizes() const { return sizes_; }
  float* weights() const { return weights_; }
  float* state(int i) const { return states_ + static_cast<size_t>(i) * stride_; }
  float* gradient(int shard) const {
    return gradients_ + static_cast<size_t>(shard) * gradient_stride_;
  }
  uint16_t* halves(int shard) const { return halves_ + static_cast<size_t>(shard) * half_stride_; }
  size_t gradient_stride() const {
    return gradient_stride_;
  }  // elements from a shard's to the next
  std::byte* sums(int shard) const { return sums_ + static_cast<size_t>(shard) * sum_stride_; }
  size_t sum_stride() const { return sum_stride_; }  // bytes
  // Two sets, for even and odd steps: one is read while the next step fills the other.
  ShardResult& result(uint64_t step, int shard) const {
    return results_[(step % 2) * static_cast<size_t>(sizes_.shards) + static_cast<size_t>(shard)];
  }
  ShardResult& evaluation(int shard) const { return evaluations_[shard]; }
  Trouble& trouble(int shard) const { return troubles_[shard]; }
  std::byte* activations() const { return activations_; }
  std::span<float> window() const { return {window_, sizes_.window}; }
  double* squares() const { return squares_; }  // one partial sum for each chunk of gradients

  static constexpr size_t kChunk = kSquareChunk;  // elements of a partial sum
  size_t chunks() const { return (sizes_.stored + kChunk - 1) / kChunk; }

 private:
  Sizes sizes_;
  size_t stride_ = 0, gradient_stride_ = 0, half_stride_ = 0, sum_stride_ = 0;
  float *weights_, *states_, *gradients_, *window_;
  uint16_t* halves_;
  ShardResult *results_, *evaluations_;
  Trouble* troubles_;
  double* squares_;
  std::byte *sums_, *activations_;
};

}  // namespace dpt
