#include "train/buffers.h"

namespace dpt {
namespace {

constexpr size_t aligned(size_t n) { return (n + 63) / 64 * 64; }

// Begins of buffers, each at a cache line of its own. Sizes that are powers of two would put the
// same element of all buffers into the same set of a cache: hence the odd line between them.
struct Walk {
  size_t at = 0;
  size_t take(size_t bytes) {
    const size_t begin = at;
    at += aligned(bytes) + 64;
    return begin;
  }
};

struct Places {
  size_t stride, gradient_stride, half_stride, weights, states, gradients, halves, results,
      evaluations, troubles, squares, sum_stride, sums, activations, window, end;
  explicit Places(const Buffers::Sizes& s) {
    Walk walk;
    const auto shards = static_cast<size_t>(s.shards);
    stride = (aligned(s.trainable * sizeof(float)) + 64) / sizeof(float);
    gradient_stride = (aligned(s.stored * sizeof(float)) + 64) / sizeof(float);
    half_stride = (aligned(s.halved * sizeof(uint16_t)) + 64) / sizeof(uint16_t);
    weights = walk.take(s.weights * sizeof(float));
    states = walk.take(static_cast<size_t>(s.states) * stride * sizeof(float));
    gradients = walk.take(shards * gradient_stride * sizeof(float));
    halves = walk.take(s.halved > 0 ? shards * half_stride * sizeof(uint16_t) : 0);
    results = walk.take(2 * shards * sizeof(ShardResult));
    evaluations = walk.take(shards * sizeof(ShardResult));
    troubles = walk.take(shards * sizeof(Trouble));
    squares = walk.take((s.stored / Buffers::kChunk + 1) * sizeof(double));
    sum_stride = aligned(s.sums) + 64;
    sums = walk.take(shards * sum_stride);
    activations = walk.take(s.activations);
    window = s.window > 0 ? walk.take(s.window * sizeof(float)) : walk.at;
    end = walk.at;
  }
};

}  // namespace

size_t Buffers::bytes(const Sizes& sizes) { return Places(sizes).end; }

Buffers::Buffers(std::byte* memory, const Sizes& sizes) : sizes_(sizes) {
  const Places p(sizes);
  const auto floats = [&](size_t at) { return reinterpret_cast<float*>(memory + at); };
  stride_ = p.stride;
  gradient_stride_ = p.gradient_stride;
  weights_ = floats(p.weights);
  states_ = floats(p.states);
  gradients_ = floats(p.gradients);
  half_stride_ = p.half_stride;
  halves_ = reinterpret_cast<uint16_t*>(memory + p.halves);
  results_ = reinterpret_cast<ShardResult*>(memory + p.results);
  evaluations_ = reinterpret_cast<ShardResult*>(memory + p.evaluations);
  troubles_ = reinterpret_cast<Trouble*>(memory + p.troubles);
  squares_ = reinterpret_cast<double*>(memory + p.squares);
  sum_stride_ = p.sum_stride;
  sums_ = memory + p.sums;
  activations_ = memory + p.activations;
  window_ = floats(p.window);
}

}  // namespace dpt
