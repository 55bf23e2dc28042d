#include "session/gradient_buckets.h"

#include <algorithm>

#include "base/error.h"
#include "base/units.h"
#include "session/update_partition.h"

namespace dpt {
namespace {

bool splits_buckets(const Devices& devices) {
  return devices.exchange.shard_states && devices.topology.replicas() > 1;
}

// Possible ends of buckets: one at each parameter.
std::vector<size_t> ends_of(const Devices& devices, const CompiledModel& model,
                            const GpuShare& share) {
  std::vector<size_t> out;
  for (size_t p = 0; p < model.graph.parameters.size(); ++p) {
    const size_t begin = model.layout.offset[p];
    if (model.graph.gradients[p] == kNoValue || begin >= model.layout.stored || !share.has(begin))
      continue;
    out.push_back(share.at(begin) / pieces_multiple(devices) * pieces_multiple(devices));
  }
  out.push_back(share.trained());
  std::ranges::sort(out);
  return out;
}

}  // namespace

double bucket_mib(const Devices& devices) { return devices.exchange.bucket_mib.value_or(25); }

std::vector<Bucket> gradient_buckets(const Devices& devices, const CompiledModel& model,
                                     const GpuShare& share, double mib) {
  constexpr double kFirst = 1;
  std::vector<Bucket> out;
  Bucket now;
  for (const size_t end : ends_of(devices, model, share)) {
    now.end = end;
    const double most = out.empty() ? std::min(kFirst, mib) : mib;
    const bool full = static_cast<double>(now.count() * sizeof(float)) >= most * kMiB;
    if (now.count() == 0 || (!full && end < share.trained())) continue;
    out.push_back(now);
    now.begin = end;
  }
  return out;
}

std::vector<Bucket> gradient_buckets(const Devices& devices, const CompiledModel& model,
                                     const GpuShare& share) {
  if (devices.sums_on_host()) return {{0, share.trained()}};
  return gradient_buckets(devices, model, share, bucket_mib(devices));
}

std::vector<size_t> made_after(const Program& program, const std::vector<Bucket>& buckets) {
  std::vector<size_t> out(buckets.size());
  for (size_t i = 0; i < program.backward.size(); ++i)
    for (const ValueId v : program.graph.nodes[program.backward[i].node].out) {
      const Location& location = program.location[static_cast<size_t>(v)];
      if (location.arena != Arena::gradients) continue;
      const size_t begin = location.offset / sizeof(float);
      const size_t end = begin + program.graph[v].desc.bytes() / sizeof(float);
      for (size_t b = 0; b < buckets.size(); ++b)
        if (buckets[b].begin < end && begin < buckets[b].end) out[b] = i;
      require(end <= buckets.back().end, "every stored gradient lies in buckets");
    }
  for (size_t b = 1; b < out.size(); ++b) out[b] = std::max(out[b], out[b - 1]);
  return out;
}

std::vector<size_t> made_after_ops(const SessionBatches& batches, const CompiledModel& model,
                                   const GpuShare& share, const std::vector<StageOp>& ops,
                                   const std::vector<Bucket>& buckets) {
  std::vector<size_t> out(buckets.size());
  for (size_t i = 0; i < ops.size(); ++i) {
    if (!ops[i].backward || ops[i].chunk + 1 < batches.train->accumulate()) continue;
    for (const UpdateRange& r : stored_ranges(model.graph, model.layout,
                                              [&](int stage) { return stage == ops[i].stage; })) {
      const size_t begin = share.at(r.begin), end = begin + r.count();
      for (size_t b = 0; b < buckets.size(); ++b)
        if (buckets[b].begin < end && begin < buckets[b].end) out[b] = i;
    }
  }
  for (size_t b = 1; b < out.size(); ++b) out[b] = std::max(out[b], out[b - 1]);
  return out;
}

Bucket own_piece(const Devices& devices, const Bucket& bucket, int replica) {
  if (!splits_buckets(devices)) return bucket;
  const size_t count = bucket.count() / static_cast<size_t>(devices.topology.replicas());
  const size_t begin = bucket.begin + count * static_cast<size_t>(replica);
  return {begin, begin + count};
}

std::vector<Bucket> own_pieces(const Devices& devices, const CompiledModel& model,
                               const GpuShare& share, int replica) {
  if (!splits_buckets(devices)) return {{0, share.trained()}};
  std::vector<Bucket> out;
  for (const Bucket& b : gradient_buckets(devices, model, share))
    out.push_back(own_piece(devices, b, replica));
  return out;
}

size_t pieces_multiple(const Devices& devices) {
  constexpr size_t kLine = kCacheLine / sizeof(float);  // elements
  return devices.on_gpu() && splits_buckets(devices)
             ? kLine * static_cast<size_t>(devices.topology.replicas())
             : 1;
}

}  // namespace dpt
