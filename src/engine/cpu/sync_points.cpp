#include "engine/cpu/sync_points.h"

#include <algorithm>
#include <cstring>

#include "comm/tree.h"

namespace dpt {

void Executor::wait_at_sync_point() {
  if (!waits_at_sync_points_) return;
  if (clock_) clock_->mark(PlanStepClock::compute);
  if (partners_.empty()) return barrier();
  team_.barrier_among(worker_, partners_);
  if (clock_) clock_->mark(PlanStepClock::waiting);
}

void Executor::sum_at_sync_point(int group, const Binding::SyncPoint& sync_point,
                                 const Micro& micro) {
  const int first = static_cast<int>(session_.shard_groups[static_cast<size_t>(group)].begin);
  const Rows shards = session_.topology.replica_of(first, session_.spec.sync_batch_norm);
  const size_t count = sync_point.sum.size();
  for (int64_t s = shards.begin; s < shards.end; ++s) {
    double* const part = sync_sums_.data() + static_cast<size_t>(s - shards.begin) * count;
    const std::byte* const from = buffers_.sums(static_cast<int>(s)) + sync_point.offset;
    const bool has_rows = micro[static_cast<size_t>(s)].rows.count() > 0;
    if (has_rows && memory_watch) memory_watch->read(from, count * sizeof(double));
    if (has_rows)
      std::memcpy(part, from, count * sizeof(double));
    else
      std::fill_n(part, count, 0.0);
    sum_parts_[static_cast<size_t>(s - shards.begin)] = part;
  }
  sum_tree(std::span<double* const>(sum_parts_.data(), static_cast<size_t>(shards.count())), 0,
           count);
  std::ranges::copy_n(sync_sums_.data(), static_cast<std::ptrdiff_t>(count),
                      sync_point.sum.begin());
}

}  // namespace dpt
