#include "session/buffers.h"

#include <algorithm>

#include "base/checked.h"
#include "base/units.h"

namespace dpt {
namespace {

Checked aligned(Checked n) { return n.rounded_up(kCacheLine); }

// Offsets of buffers, each aligned to a cache line. With sizes that are powers of two, equal
// elements of all buffers would share a cache set; the extra line between buffers prevents this.
struct Walk {
  size_t at = 0;
  size_t take(Checked bytes) {
    const size_t begin = at;
    at = (at + aligned(bytes) + kCacheLine).size();
    return begin;
  }
};

struct Offsets {
  size_t stride, weight_stride, squares_stride, gradient_stride, half_stride, weights, states,
      gradients, halves, results, evaluations, non_finites, squares, sum_stride, sums, activations,
      window, metrics_stride, metrics, measures, staging, end;
  explicit Offsets(const Buffers::Sizes& s) {
    Walk walk;
    const auto shards = static_cast<size_t>(s.shards);
    // A host without shards has a buffer, too: for the sums of the elements that it owns.
    const auto own = s.own_shards ? static_cast<size_t>(std::max(1, s.own_shards->count)) : shards;
    // Elements between the starts of equal buffers.
    const auto stride_of = [](Checked elements, size_t size) {
      return (aligned(elements * size) + kCacheLine).size() / size;
    };
    const auto replicas = static_cast<size_t>(s.replicas);
    stride = stride_of(s.trainable, sizeof(float));
    weight_stride = stride_of(s.weights, sizeof(float));
    squares_stride = stride_of(s.stored / Buffers::kChunk + 1, sizeof(double));
    gradient_stride = stride_of(s.stored, sizeof(float));
    half_stride = stride_of(s.halved, sizeof(uint16_t));
    const Checked more_weights = Checked(replicas - 1) * weight_stride;
    weights = walk.take((more_weights + s.weights) * sizeof(float));
    states = walk.take(Checked(replicas) * s.states * stride * sizeof(float));
    gradients = walk.take(Checked(own) * gradient_stride * sizeof(float));
    halves = walk.take(Checked(s.halved > 0 ? own : 0) * half_stride * sizeof(uint16_t));
    results = walk.take(2 * shards * sizeof(ShardResult));
    evaluations = walk.take(shards * sizeof(ShardResult));
    non_finites = walk.take(shards * sizeof(NonFinite));
    const Checked more_squares = Checked(replicas - 1) * squares_stride;
    squares = walk.take((more_squares + s.stored / Buffers::kChunk + 1) * sizeof(double));
    sum_stride = (aligned(s.sums) + kCacheLine).size();
    sums = walk.take(Checked(shards) * sum_stride);
    activations = walk.take(s.activations);
    window = s.window > 0 ? walk.take(Checked(s.window) * sizeof(float)) : walk.at;
    metrics_stride = stride_of(s.metrics, sizeof(double));
    metrics =
        s.metrics > 0 ? walk.take(Checked(shards) * metrics_stride * sizeof(double)) : walk.at;
    measures = s.measures > 0 ? walk.take(Checked(s.measures) * sizeof(double)) : walk.at;
    staging = s.staging > 0 ? walk.take(s.staging) : walk.at;
    end = walk.at;
  }
};

}  // namespace

size_t Buffers::bytes(const Sizes& sizes) { return Offsets(sizes).end; }

Buffers::Buffers(std::byte* memory, const Sizes& sizes) : sizes_(sizes) {
  const Offsets p(sizes);
  const auto floats = [&](size_t at) { return reinterpret_cast<float*>(memory + at); };
  stride_ = p.stride;
  weight_stride_ = p.weight_stride;
  squares_stride_ = p.squares_stride;
  gradient_stride_ = p.gradient_stride;
  weights_ = floats(p.weights);
  states_ = floats(p.states);
  gradients_ = floats(p.gradients);
  half_stride_ = p.half_stride;
  halves_ = reinterpret_cast<uint16_t*>(memory + p.halves);
  results_ = reinterpret_cast<ShardResult*>(memory + p.results);
  evaluations_ = reinterpret_cast<ShardResult*>(memory + p.evaluations);
  non_finites_ = reinterpret_cast<NonFinite*>(memory + p.non_finites);
  squares_ = reinterpret_cast<double*>(memory + p.squares);
  sum_stride_ = p.sum_stride;
  sums_ = memory + p.sums;
  activations_ = memory + p.activations;
  window_ = floats(p.window);
  metrics_stride_ = p.metrics_stride;
  metrics_ = reinterpret_cast<double*>(memory + p.metrics);
  measures_ = reinterpret_cast<double*>(memory + p.measures);
  staging_ = memory + p.staging;
  first_own_ = own_shards().first;
}

Buffers Buffers::of_replica(int replica) const {
  Buffers out = *this;
  const auto r = static_cast<size_t>(replica);
  out.weights_ += r * weight_stride_;
  out.states_ += r * static_cast<size_t>(sizes_.states) * stride_;
  out.squares_ += r * squares_stride_;
  return out;
}

void Buffers::copy_to_replicas() const {
  for (int r = 1; r < sizes_.replicas; ++r) {
    const Buffers to = of_replica(r);
    std::copy_n(weights_, sizes_.weights, to.weights_);
    std::copy_n(states_, static_cast<size_t>(sizes_.states) * stride_, to.states_);
  }
}

}  // namespace dpt
