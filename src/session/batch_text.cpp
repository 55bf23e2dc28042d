#include "session/batch_text.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include <fmt/format.h>

#include "base/count.h"
#include "session/batch_partitioner.h"

namespace dpt {

std::string batch_text(const Devices& devices, const SessionBatches& batches) {
  const int replicas = devices.topology.replicas();
  StepRows rows;
  batches.train->step(0, rows);
  std::vector<int64_t> samples(static_cast<size_t>(replicas));
  for (const auto& micro : rows.micro)
    for (int shard = 0; shard < devices.topology.shards; ++shard)
      samples[static_cast<size_t>(devices.topology.replica(devices.topology.owner(shard)))] +=
          micro[static_cast<size_t>(shard)].rows.count();
  const int64_t all = std::accumulate(samples.begin(), samples.end(), int64_t{0});
  std::string out = counted(all, "sample");
  if (all != batches.global_batch) out += fmt::format(" (batch_size: {})", batches.global_batch);
  if (batches.train->accumulate() > 1)
    out += fmt::format(" in {} micro-batches", batches.train->accumulate());
  if (replicas == 1) return out;
  const auto [fewest, most] = std::ranges::minmax(samples);
  if (fewest == most) return out + fmt::format(", {} per replica", most);
  out += fmt::format(", at most {} per replica", most);
  const auto idle = std::ranges::count(samples, 0);
  return idle == 0 ? out : out + fmt::format(", none for {} of {}", idle, replicas);
}

}  // namespace dpt
