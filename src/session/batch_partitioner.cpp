#include "session/batch_partitioner.h"

#include <algorithm>
#include <set>

namespace dpt {

StepCutter::StepCutter(const Batches& batches, const Topology& who, int64_t accumulate)
    : batches_(batches), who_(who), accumulate_(accumulate) {
  if (steps() > 0) cut_step(0, full_);
}

void StepCutter::step(int64_t step, StepRows& out) const {
  if (batches_.global_count(step) < full_.samples) return cut_step(step, out);
  out = full_;
  for (auto& micro : out.micro)
    for (ShardRows& shard : micro) {
      shard.rows.begin += step * batches_.batch;
      shard.rows.end += step * batches_.batch;
    }
}

void StepCutter::cut_step(int64_t step, StepRows& out) const {
  const int parts = static_cast<int>(accumulate_), ranks = batches_.deal.ranks;
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
    const std::vector<Rows> shards = cut(who_, counts);
    std::vector<ShardRows>& rows = out.micro[static_cast<size_t>(m)];
    rows.resize(shards.size());
    size_t replica = 0;
    for (int s = 0; s < who_.shards; ++s) {
      const auto own = dealt() ? static_cast<size_t>(who_.replica(who_.owner(s))) : 0;
      for (; replica < own; ++replica) before += counts[replica];
      const Rows& shard = shards[static_cast<size_t>(s)];
      rows[static_cast<size_t>(s)] = {{begins[own] + shard.begin, begins[own] + shard.end},
                                      before + shard.begin};
    }
    for (; replica < counts.size(); ++replica) before += counts[replica];
  }
}

std::vector<GroupRows> StepCutter::group_rows(const std::vector<Rows>& groups) const {
  std::set<GroupRows> out;
  StepRows rows;
  // Only the last few steps of an epoch can differ: ranks run out of samples within one step of
  // each other.
  for (int64_t b = 0; b < steps(); b = b == 0 ? std::max<int64_t>(1, steps() - 3) : b + 1) {
    step(b, rows);
    for (const auto& micro : rows.micro)
      for (const Rows& group : groups)
        if (GroupRows found = dpt::group_rows(micro, group); found.total() > 0)
          out.insert(std::move(found));
  }
  return {out.begin(), out.end()};
}

GroupRows group_rows(const std::vector<ShardRows>& micro, Rows group) {
  GroupRows out;
  for (int64_t s = 0; s < std::ssize(micro); ++s) {
    const int64_t n = micro[static_cast<size_t>(s)].rows.count();
    out.largest = std::max(out.largest, n);
    if (group.begin <= s && s < group.end) out.shards.push_back(n);
  }
  return out;
}

}  // namespace dpt
