// Gradients as replicas read them of each other where `compress` asks for it: parallel/exchange.h.
#pragma once

#include <cstddef>
#include <vector>

#include "base/tensor.h"
#include "session/buffers.h"
#include "session/update_share.h"

namespace dpt {

// Of one worker; Thread: its own.
class CompressedGradients {
 public:
  static constexpr size_t kTile = 1024;  // elements of a sum that stays in the first cache

  CompressedGradients(DType half, const Buffers& buffers);

  // A shard's stored gradients, where they lie as halves afterwards.
  void write(int shard, UpdateRange range) const;

  float* tile() { return wide_.data() + tiles_.size() * kTile; }  // room for a sum

  // Elements of the sum over shards, to `out`: in the fixed tree and in f32, then rounded to the
  // half, as an all_reduce in it would hand it back.
  void sum(UpdateRange range, float* out);

 private:
  DType half_;
  Buffers buffers_;
  std::vector<float> wide_;  // a tile of each shard, and one more
  std::vector<const float*> tiles_;
};

}  // namespace dpt
