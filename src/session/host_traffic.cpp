#include "session/host_traffic.h"

#include <algorithm>
#include <numeric>

#include "session/buffers.h"

namespace dpt {

HostTrafficCounter::HostTrafficCounter(const Session& session)
    : session_(session), layout_(session.shares.hosts.value()) {
  uint64_t sums = 0;  // bytes per shard
  for (const auto& [rows, program] : session.model.programs)
    sums = std::max<uint64_t>(sums, program.sum_bytes);
  const auto hosts = static_cast<size_t>(session.devices.topology.hosts());
  std::vector<uint64_t> shards(hosts);
  for (int s = 0; s < session.devices.topology.shards; ++s)
    ++shards[static_cast<size_t>(session.devices.topology.host_of_shard(s))];
  for (size_t h = 0; h < hosts; ++h) {
    results_.push_back(kHostResultBytes + shards[h] * kShardResultBytes);
    sums_.push_back(shards[h] * sums);
    uint64_t chunks = 0;  // of norm partials
    for (size_t b = 0; b < owners().buckets(); ++b)
      chunks +=
          (owners().piece(b, static_cast<int>(h)).count() + Buffers::kChunk - 1) / Buffers::kChunk;
    squares_.push_back(chunks * sizeof(double));
  }
}

HostTraffic HostTrafficCounter::of_frames(const std::vector<uint64_t>& bytes, int host) const {
  const uint64_t own = bytes[static_cast<size_t>(host)];
  const uint64_t others = bytes.size() - 1;
  const auto senders = static_cast<uint64_t>(
      std::ranges::count_if(bytes, [](uint64_t n) { return n > 0; }) - (own > 0 ? 1 : 0));
  return {.sent = own * others,
          .received = std::accumulate(bytes.begin(), bytes.end(), uint64_t{0}) - own,
          .messages = std::max(senders, own > 0 ? others : 0)};
}

HostTraffic HostTrafficCounter::of(const PlanStep& s, int host) const {
  const auto bucket = static_cast<size_t>(std::max(0, s.bucket));
  if (s.actor != PlanStep::Actor::leaders || s.op == PlanOp::wait) return {};
  switch (s.quantity) {
    case Quantity::results:
      return of_frames(results_, host);
    case Quantity::squares:
      return of_frames(squares_, host);
    case Quantity::gradients:
      return gradient_traffic(layout_.parts(), owners(), bucket, host);
    case Quantity::weights:
      return weight_traffic(owners(), bucket, host);
    default:
      return {};
  }
}

template <class Of>
HostTraffic HostTrafficCounter::most_of(Of of) const {
  HostTraffic out;
  for (int h = 0; h < owners().hosts(); ++h) {
    const HostTraffic one = of(h);
    out = {.sent = std::max(out.sent, one.sent),
           .received = std::max(out.received, one.received),
           .messages = std::max(out.messages, one.messages)};
  }
  return out;
}

HostTraffic HostTrafficCounter::most(const PlanStep& step) const {
  return most_of([&](int host) { return of(step, host); });
}

HostTraffic HostTrafficCounter::most_at_sync_points() const {
  if (!session_.settings.spec.sync_batch_norm) return {};
  HostTraffic out = most_of([&](int host) { return of_frames(sums_, host); });
  out.messages *= static_cast<uint64_t>(session_.plan.sync_points());
  return out;
}

}  // namespace dpt
