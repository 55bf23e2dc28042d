// The layout of the memory that the workers of a run share: weights, optimizer states, a gradient
// buffer for each shard, activations, and small results. All ranks of a machine map the same
// memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "backend/cpu/simd/simd.h"

namespace dpt {

// A shard's results of a step or an evaluation. One per cache line, because owners write
// concurrently.
struct alignas(64) ShardResult {
  double loss = 0;     // the shard's part: sum of terms / divisor
  double weight = 0;   // the shard's part of the divisor
  double correct = 0;  // correctly classified samples
};

// Result of the non-finite check of a shard. Over all shards, the smallest instruction counts.
struct alignas(64) Trouble {
  // First instruction with a non-finite result, counted over prologue, forward and loss parts of
  // all micro-batches; -1: none.
  int64_t instruction = -1;
  // Index in graph.parameters of a parameter that was not finite before the step; -1: none.
  int64_t parameter = -1;
  // The batch's first samples, as indices in the training set, with non-finite values; -1: none.
  int64_t input = -1, target = -1;
};

// Size of Buffers::window(): elements of workers' own optimizer states that are exchanged at once.
inline constexpr size_t kStateWindow = 16384;

class Buffers {
 public:
  struct Sizes {
    size_t weights = 0;    // elements
    size_t stored = 0;     // elements of each gradient buffer
    size_t halved = 0;     // elements of each shard's gradients that are also stored as halves
    size_t trainable = 0;  // elements of each state buffer
    int states = 0;
    int shards = 1;
    size_t sums = 0;         // bytes per shard, for sync points (program.h, Note [cuts])
    size_t activations = 0;  // bytes of all arenas
    size_t window = 0;       // elements of window()
  };
  static size_t bytes(const Sizes& sizes);

  // Does not own `memory`. REQUIRES: it is zeroed, has bytes(sizes) bytes, and is aligned to 64.
  Buffers(std::byte* memory, const Sizes& sizes);

  const Sizes& sizes() const { return sizes_; }
  float* weights() const { return weights_; }
  float* state(int i) const { return states_ + static_cast<size_t>(i) * stride_; }
  float* gradient(int shard) const {
    return gradients_ + static_cast<size_t>(shard) * gradient_stride_;
  }
  uint16_t* halves(int shard) const { return halves_ + static_cast<size_t>(shard) * half_stride_; }
  // Elements between the gradient buffers of consecutive shards.
  size_t gradient_stride() const { return gradient_stride_; }
  std::byte* sums(int shard) const { return sums_ + static_cast<size_t>(shard) * sum_stride_; }
  size_t sum_stride() const { return sum_stride_; }  // bytes
  // There are two sets, for even and odd steps: one is read while the next step writes the other.
  ShardResult& result(uint64_t step, int shard) const {
    return results_[(step % 2) * static_cast<size_t>(sizes_.shards) + static_cast<size_t>(shard)];
  }
  ShardResult& evaluation(int shard) const { return evaluations_[shard]; }
  Trouble& trouble(int shard) const { return troubles_[shard]; }
  std::byte* activations() const { return activations_; }
  std::span<float> window() const { return {window_, sizes_.window}; }
  double* squares() const { return squares_; }  // one partial sum per chunk of gradients

  static constexpr size_t kChunk = kSquareChunk;  // gradient elements per partial sum
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
