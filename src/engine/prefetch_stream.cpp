#include "engine/prefetch_stream.h"

#include <algorithm>
#include <utility>

#include "base/machine.h"

namespace dpt {
namespace {

int threads_of(const Topology& topology) {
  return std::max(1, static_cast<int>(usable_cores().size()) /
                         static_cast<int>(topology.ranks_of_host(topology.host).count()));
}

}  // namespace

PrefetchStream::PrefetchStream(const Dataset& dataset, const BatchPartitioner& partitioner,
                               const Topology& topology, int rank)
    : partitioner_(partitioner),
      shards_(static_cast<size_t>(topology.shards)),
      sample_bytes_(static_cast<size_t>(dataset.inputs.sample().elements())),
      prefetch_(dataset, threads_of(topology), usable_cores()) {
  for (int s = 0; s < topology.shards; ++s)
    own_.push_back(topology.rank_of(topology.owner(s)) == rank);
}

void PrefetchStream::begin(DrawnSamples order, int64_t first,
                           const std::function<uint32_t(DrawnSample)>& partner) {
  std::vector<std::vector<uint32_t>> batches(static_cast<size_t>(partitioner_.steps()));
  parts_.clear();
  StepRows rows;
  for (size_t b = 0; b < batches.size(); ++b) {
    partitioner_.step(static_cast<int64_t>(b), rows);
    for (const auto& micro : rows.micro)
      for (size_t s = 0; s < shards_; ++s) {
        const Rows& r = micro[s].rows;
        const bool taken = own_[s] && static_cast<int64_t>(b) >= first;
        const size_t count = taken ? static_cast<size_t>(r.count()) : 0;
        parts_.push_back({batches[b].size(), partner ? 2 * count : count});
        const size_t begin = count > 0 ? static_cast<size_t>(r.begin) : 0;
        for (size_t i = begin; i < begin + count; ++i) {
          batches[b].push_back(order[i].row);
          if (partner) batches[b].push_back(partner(order[i]));
        }
      }
  }
  prefetch_.begin(std::move(batches));
}

PrefetchStream::Part& PrefetchStream::part(int64_t batch, int micro, int64_t shard) {
  const auto micros = static_cast<size_t>(partitioner_.accumulate());
  return parts_[(static_cast<size_t>(batch) * micros + static_cast<size_t>(micro)) * shards_ +
                static_cast<size_t>(shard)];
}

const std::byte* PrefetchStream::take(int64_t batch, int micro, Rows shards, const Team& team) {
  const auto check = [&team] {
    if (team.broken()) throw TeamBroken(team.reason());
  };
  return prefetch_.take(static_cast<size_t>(batch), check) +
         part(batch, micro, shards.begin).first * sample_bytes_;
}

void PrefetchStream::give_back(int64_t batch, int micro, Rows shards) {
  size_t count = 0;
  for (int64_t s = shards.begin; s < shards.end; ++s) count += part(batch, micro, s).count;
  prefetch_.give_back(static_cast<size_t>(batch), count);
}

}  // namespace dpt
