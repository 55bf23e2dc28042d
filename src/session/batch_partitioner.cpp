#include "session/batch_partitioner.h"

#include <algorithm>
#include <set>

namespace dpt {

BatchPartitioner::BatchPartitioner(const Batches& batches, const Topology& topology,
                                   int64_t accumulate)
    : batches_(batches), topology_(topology), accumulate_(accumulate) {
  if (steps() > 0) partition_step(0, full_);
}

void BatchPartitioner::step(int64_t step, StepRows& out) const {
  if (batches_.global_count(step) < full_.samples) return partition_step(step, out);
  out = full_;
  for (auto& micro : out.micro)
    for (ShardRows& shard : micro) {
      shard.rows.begin += step * batches_.batch;
      shard.rows.end += step * batches_.batch;
    }
}

void BatchPartitioner::partition_step(int64_t step, StepRows& out) const {
  const int parts = static_cast<int>(accumulate_), ranks = batches_.assignment.ranks;
  out.samples = batches_.global_count(step);
  out.micro.resize(static_cast<size_t>(parts));
  int64_t before = 0;  // samples of earlier micro-batches, and of lower replicas in this one
  for (int m = 0; m < parts; ++m) {
    std::vector<int64_t> begins, counts;
    for (int r = 0; r < ranks; ++r) {
      const RowRange rows = batches_.rows(r, step);
      const Rows piece = chunk(rows.count(), parts, m);
      begins.push_back(rows.begin + piece.begin);
      counts.push_back(piece.count());
    }
    const std::vector<Rows> shards = rows_of_shards(topology_, counts);
    std::vector<ShardRows>& rows = out.micro[static_cast<size_t>(m)];
    rows.resize(shards.size());
    size_t replica = 0;
    for (int s = 0; s < topology_.shards; ++s) {
      const auto own =
          per_replica_sampling() ? static_cast<size_t>(topology_.replica(topology_.owner(s))) : 0;
      for (; replica < own; ++replica) before += counts[replica];
      const Rows& shard = shards[static_cast<size_t>(s)];
      rows[static_cast<size_t>(s)] = {{begins[own] + shard.begin, begins[own] + shard.end},
                                      before + shard.begin};
    }
    for (; replica < counts.size(); ++replica) before += counts[replica];
  }
}

std::vector<ShardGroupRows> BatchPartitioner::shard_group_rows(
    const std::vector<Rows>& groups) const {
  std::set<ShardGroupRows> out;
  StepRows rows;
  // Only the last few steps of an epoch can differ: ranks run out of samples within one step of
  // each other.
  for (int64_t b = 0; b < steps(); b = b == 0 ? std::max<int64_t>(1, steps() - 3) : b + 1) {
    step(b, rows);
    for (const auto& micro : rows.micro)
      for (const Rows& group : groups)
        if (ShardGroupRows found = dpt::shard_group_rows(micro, group); found.total() > 0)
          out.insert(std::move(found));
  }
  return {out.begin(), out.end()};
}

ShardGroupRows shard_group_rows(const std::vector<ShardRows>& micro, Rows group) {
  ShardGroupRows out;
  for (int64_t s = 0; s < std::ssize(micro); ++s) {
    const int64_t n = micro[static_cast<size_t>(s)].rows.count();
    out.largest = std::max(out.largest, n);
    if (group.begin <= s && s < group.end) out.shards.push_back(n);
  }
  return out;
}

}  // namespace dpt
