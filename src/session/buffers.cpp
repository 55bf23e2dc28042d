#include "session/buffers.h"

#include <algorithm>

#include "base/checked.h"
#include "base/units.h"

namespace dpt {
namespace {

Checked aligned(Checked n) { return n.rounded_up(kCacheLine); }

// Buffers one after another, each aligned to a cache line. With sizes that are powers of two, equal
// elements of all buffers would share a cache set; the extra line between buffers prevents this.
struct Walk {
  std::byte* memory;  // null: only the size is wanted
  size_t at = 0;

  // empty: takes no memory.
  template <class T>
  void take(T*& to, Checked elements, bool empty = false) {
    to = memory ? reinterpret_cast<T*>(memory + at) : nullptr;
    if (!empty) at = (at + aligned(elements * sizeof(T)) + kCacheLine).size();
  }
};

// Elements between the starts of equal buffers.
size_t stride_of(Checked elements, size_t size) {
  return (aligned(elements * size) + kCacheLine).size() / size;
}

}  // namespace

size_t Buffers::bytes(const Sizes& sizes) { return Buffers(nullptr, sizes).bytes_; }

Buffers::Buffers(std::byte* memory, const Sizes& s)
    : sizes_(s),
      stride_(stride_of(s.trainable, sizeof(float))),
      gradient_stride_(stride_of(s.stored, sizeof(float))),
      half_stride_(stride_of(s.halved, sizeof(uint16_t))),
      sum_stride_(stride_of(s.sums, 1)),
      metrics_stride_(stride_of(s.metrics, sizeof(double))),
      weight_stride_(stride_of(s.weights, sizeof(float))),
      squares_stride_(stride_of(s.stored / kChunk + 1, sizeof(double))),
      first_own_(own_shards().first) {
  const auto shards = static_cast<size_t>(s.shards);
  // A host without shards has a buffer, too: for the sums of the elements that it owns.
  const auto own = s.own_shards ? static_cast<size_t>(std::max(1, s.own_shards->count)) : shards;
  const Checked more_replicas = s.replicas - 1;
  Walk walk{.memory = memory};
  walk.take(weights_, more_replicas * weight_stride_ + s.weights);
  walk.take(states_, Checked(s.replicas) * s.states * stride_);
  walk.take(gradients_, Checked(own) * gradient_stride_);
  walk.take(halves_, Checked(s.halved > 0 ? own : 0) * half_stride_);
  walk.take(results_, 2 * shards);
  walk.take(evaluations_, shards);
  walk.take(non_finites_, shards);
  walk.take(squares_, more_replicas * squares_stride_ + s.stored / kChunk + 1);
  walk.take(sums_, Checked(shards) * sum_stride_);
  walk.take(activations_, s.activations);
  walk.take(window_, s.window, s.window == 0);
  walk.take(metrics_, Checked(shards) * metrics_stride_, s.metrics == 0);
  walk.take(measures_, s.measures, s.measures == 0);
  walk.take(staging_, s.staging, s.staging == 0);
  bytes_ = walk.at;
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
