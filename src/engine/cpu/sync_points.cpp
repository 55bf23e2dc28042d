#include "engine/cpu/sync_points.h"

#include <algorithm>
#include <cstring>

#include "comm/tree.h"

namespace dpt {

void Executor::meet_at_cut() {
  if (!meets_at_cuts_) return;
  if (clock_) clock_->mark(StageClock::compute);
  if (partners_.empty()) return meet();
  team_.meet_some(worker_, partners_);
  if (clock_) clock_->mark(StageClock::waiting);
}

void Executor::sum_cut(int group, const Binding::Cut& cut, const Micro& micro) {
  const int first = static_cast<int>(session_.groups[static_cast<size_t>(group)].begin);
  const Rows shards = session_.who.replica_of(first, session_.spec.sync_batch_norm);
  const size_t count = cut.sum.size();
  for (int64_t s = shards.begin; s < shards.end; ++s) {
    double* const part = cut_sums_.data() + static_cast<size_t>(s - shards.begin) * count;
    if (micro[static_cast<size_t>(s)].rows.count() > 0)
      std::memcpy(part, buffers_.sums(static_cast<int>(s)) + cut.offset, count * sizeof(double));
    else
      std::fill_n(part, count, 0.0);
    sum_parts_[static_cast<size_t>(s - shards.begin)] = part;
  }
  sum_tree(std::span<double* const>(sum_parts_.data(), static_cast<size_t>(shards.count())), 0,
           count);
  std::ranges::copy_n(cut_sums_.data(), static_cast<std::ptrdiff_t>(count), cut.sum.begin());
}

}  // namespace dpt
