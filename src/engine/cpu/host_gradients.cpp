#include "engine/cpu/host_gradients.h"

#include <algorithm>

#include "backend/cpu/half_kernels.h"
#include "backend/cpu/simd/simd.h"

namespace dpt {

HostGradients::HostGradients(const Session& session, const Buffers& buffers)
    : session_(session),
      buffers_(buffers),
      layout_(session.shares.hosts.value()),
      half_(session.devices.exchange.compress),
      tiles_(static_cast<size_t>(buffers.sizes().shards) * kTile),
      sources_(static_cast<size_t>(buffers.sizes().shards)) {}

void HostGradients::sum_own(UpdateRange range) {
  const int host = session_.devices.topology.host;
  for (const GradientPart& part : layout_.parts()) {
    if (part.host != host || part.halves) continue;
    if (!half_ && part.shards.count() == 1) continue;
    if (!half_) {
      for (int64_t s = part.shards.begin; s < part.shards.end; ++s)
        sources_[static_cast<size_t>(s - part.shards.begin)] =
            buffers_.gradient(static_cast<int>(s));
      simd_kernels().sum_shards_range(buffers_.gradient(static_cast<int>(part.shards.begin)),
                                      sources_.data(), static_cast<int>(part.shards.count()),
                                      range.begin, range.end);
      continue;
    }
    for (size_t at = range.begin; at < range.end; at += kTile)
      sum_tile(part, at, std::min(kTile, range.end - at));
  }
}

// The sum of halves of several shards, in f32.
void HostGradients::sum_tile(const GradientPart& part, size_t at, size_t count) {
  const auto shards = static_cast<size_t>(part.shards.count());
  for (size_t s = 0; s < shards; ++s) {
    const int shard = static_cast<int>(part.shards.begin) + static_cast<int>(s);
    from_halves(*half_, buffers_.halves(shard) + at, tile(s), count);
    sources_[s] = tile(s);
  }
  simd_kernels().sum_shards_range(buffers_.gradient(static_cast<int>(part.shards.begin)) + at,
                                  sources_.data(), static_cast<int>(shards), 0, count);
}

// `count` elements of a part from element `at` on, in f32.
const float* HostGradients::source(size_t p, size_t at, size_t count, size_t bucket) {
  const GradientPart& part = layout_.parts()[p];
  const int host = session_.devices.topology.host;
  const int shard = static_cast<int>(part.shards.begin);
  const size_t in_piece = at - layout_.owners().piece(bucket, host).begin;
  const std::byte* const staged = buffers_.staging() + layout_.staged(p, bucket);
  if (!part.halves)
    return part.host == host ? buffers_.gradient(shard) + at
                             : reinterpret_cast<const float*>(staged) + in_piece;
  const uint16_t* const halves = part.host == host
                                     ? buffers_.halves(shard) + at
                                     : reinterpret_cast<const uint16_t*>(staged) + in_piece;
  from_halves(*half_, halves, tile(p), count);
  return tile(p);
}

void HostGradients::complete(UpdateRange range, size_t bucket) {
  const auto& sums = layout_.sums();
  for (size_t at = range.begin; at < range.end; at += kTile) {
    const size_t count = std::min(kTile, range.end - at);
    float* const to = total() + at;
    for (size_t p = 0; p < layout_.parts().size(); ++p) sources_[p] = source(p, at, count, bucket);
    for (size_t i = 0; i < sums.size(); ++i) {
      const auto into = static_cast<size_t>(sums[i].into), from = static_cast<size_t>(sums[i].from);
      const float* const both[] = {sources_[into], sources_[from]};
      float* const sum = i + 1 == sums.size() ? to : tile(into);
      simd_kernels().sum_shards_range(sum, both, 2, 0, count);
      sources_[into] = sum;
    }
    if (sources_[0] != to) std::copy_n(sources_[0], count, to);
    if (half_) round_weights(*half_, to, count);
  }
}

}  // namespace dpt
