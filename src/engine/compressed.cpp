#include "engine/compressed.h"

#include <algorithm>

#include "backend/cpu/half_kernels.h"
#include "backend/cpu/simd/simd.h"

namespace dpt {

CompressedGradients::CompressedGradients(DType half, const Buffers& buffers)
    : half_(half),
      buffers_(buffers),
      wide_(static_cast<size_t>(buffers.sizes().shards + 1) * kTile),
      tiles_(static_cast<size_t>(buffers.sizes().shards)) {
  for (size_t s = 0; s < tiles_.size(); ++s) tiles_[s] = &wide_[s * kTile];
}

void CompressedGradients::write(int shard, UpdateRange range) const {
  to_halves(half_, buffers_.gradient(shard) + range.begin, buffers_.halves(shard) + range.begin,
            range.count());
}

void CompressedGradients::sum(UpdateRange range, float* out) {
  const int shards = buffers_.sizes().shards;
  for (size_t at = range.begin; at < range.end; at += kTile) {
    const size_t n = std::min(kTile, range.end - at);
    for (int s = 0; s < shards; ++s)
      from_halves(half_, buffers_.halves(s) + at, &wide_[static_cast<size_t>(s) * kTile], n);
    float* const to = out + (at - range.begin);
    simd_kernels().sum_shards_range(to, tiles_.data(), shards, 0, n);
    round_weights(half_, to, n);
  }
}

}  // namespace dpt
