#include "engine/cpu/shard_gradients.h"

#include <cstring>

#include "backend/cpu/simd/simd.h"

namespace dpt {

ShardGradients::ShardGradients(const CpuWorker& worker) : worker_(worker) {
  const Session& session = worker.session;
  const Rows summed = worker.summed_shards;
  for (int64_t s = summed.begin; s < summed.end && session.devices.topology.hosts() == 1; ++s)
    shards_.push_back(worker.buffers.gradient(static_cast<int>(s)));
  const Graph& graph = session.model.programs.begin()->second.graph;
  for (int stage = 0; stage <= worker.stages.last(); ++stage)
    stage_stored_.push_back(
        stored_ranges(graph, session.model.layout, [&](int s) { return s == stage; }));
  if (session.devices.exchange.compress)
    compressed_.emplace(*session.devices.exchange.compress, worker.buffers);
  if (session.devices.topology.hosts() > 1) hosts_.emplace(session, worker.buffers);
}

void ShardGradients::clear_empty(int group, const MicroBatch& first) const {
  for (int stage = 0; stage <= worker_.stages.last(); ++stage) clear_empty(group, first, stage);
}

void ShardGradients::clear_empty(int group, const MicroBatch& first, int stage) const {
  for (const UpdateRange& range : stage_stored_[static_cast<size_t>(stage)])
    clear_empty(group, first, range);
}

void ShardGradients::clear_empty(int group, const MicroBatch& first, UpdateRange range) const {
  const Rows shards = worker_.shards(group);
  for (int64_t s = shards.begin; s < shards.end; ++s)
    if (first[static_cast<size_t>(s)].rows.count() == 0)
      std::memset(worker_.buffers.gradient(static_cast<int>(s)) + range.begin, 0,
                  range.count() * sizeof(float));
}

void ShardGradients::compress(int group, int bucket) const {
  const Rows shards = worker_.shards(group);
  const Bucket only = bucket < 0 ? Bucket{0, worker_.buffers.sizes().stored}
                                 : hosts_->owners().bucket(static_cast<size_t>(bucket));
  for (int64_t s = shards.begin; s < shards.end; ++s)
    for (int stage = 0; stage <= worker_.stages.last(); ++stage)
      if (worker_.stages.has(stage))
        for (const UpdateRange& range : stage_stored_[static_cast<size_t>(stage)]) {
          const size_t begin = std::max(range.begin, only.begin);
          const size_t end = std::min(range.end, only.end);
          if (begin < end) compressed_->write(static_cast<int>(s), {begin, end});
        }
}

void ShardGradients::sum_own(size_t bucket) {
  const Topology& topology = worker_.session.devices.topology;
  const Bucket own =
      part_of(hosts_->owners().bucket(bucket), worker_.team_number,
              topology.workers_of_host(topology.host).count(), hosts_->owners().multiple());
  hosts_->sum_own({own.begin, own.end});
}

void ShardGradients::sum_parts(size_t bucket) {
  for (const UpdatePiece& p : worker_.share)
    if (p.bucket == static_cast<int>(bucket)) hosts_->complete({p.begin, p.end}, bucket);
  summed_ = true;
}

void ShardGradients::watch(UpdateRange range) const {
  if (!memory_watch) return;
  const Buffers& buffers = worker_.buffers;
  const int first = static_cast<int>(worker_.summed_shards.begin);
  const int end = first + (summed_ ? 1 : static_cast<int>(shards_.size()));
  for (int s = first; s < end; ++s)
    if (compressed_ && !summed_)
      memory_watch->read(buffers.halves(s) + range.begin, range.count() * sizeof(uint16_t));
    else
      memory_watch->read(buffers.gradient(s) + range.begin, range.count() * sizeof(float));
}

void ShardGradients::sum(UpdateRange range) {
  watch(range);
  if (compressed_)
    compressed_->sum(range, total() + range.begin);
  else
    simd_kernels().sum_shards_range(total(), shards_.data(), static_cast<int>(shards_.size()),
                                    range.begin, range.end);
  summed_ = true;
}

}  // namespace dpt
