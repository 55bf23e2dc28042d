#include "parallel/host_sums.h"

#include <algorithm>

#include "base/error.h"

namespace dpt {
namespace {

size_t rounded_up(size_t n, size_t multiple) { return (n + multiple - 1) / multiple * multiple; }

// The part that begins with this shard. REQUIRES: there is one.
int part_from(const std::vector<GradientPart>& parts, int64_t shard) {
  const auto at = std::ranges::lower_bound(parts, shard, {},
                                           [](const GradientPart& p) { return p.shards.begin; });
  require(at != parts.end() && at->shards.begin == shard, "parts are subtrees");
  return static_cast<int>(at - parts.begin());
}

}  // namespace

std::vector<Rows> subtrees(Rows own, int shards) {
  std::vector<Rows> out;
  for (int64_t at = own.begin; at < own.end; at = out.back().end) {
    int64_t size = 1;
    while (size < shards && at % (2 * size) == 0 &&
           std::min<int64_t>(at + 2 * size, shards) <= own.end)
      size *= 2;
    out.push_back({at, std::min<int64_t>(at + size, shards)});
  }
  return out;
}

std::vector<GradientPart> gradient_parts(const Topology& topology, bool compress) {
  std::vector<GradientPart> out;
  for (int host = 0; host < topology.hosts(); ++host) {
    const Rows own = topology.shards_of_host(host);
    const std::vector<Rows> sums = subtrees(own, topology.shards);
    if (compress && 2 * own.count() < 4 * std::ssize(sums)) {
      for (int64_t s = own.begin; s < own.end; ++s)
        out.push_back({.shards = {s, s + 1}, .host = host, .halves = true});
    } else {
      for (const Rows& r : sums) out.push_back({.shards = r, .host = host});
    }
  }
  return out;
}

std::vector<PartSum> completing_sums(const std::vector<GradientPart>& parts, int shards) {
  std::vector<PartSum> out;
  for (int64_t step = 1; step < shards; step *= 2)
    for (int64_t s = 0; s + step < shards; s += 2 * step) {
      // A sum is missing where two parts meet between its halves.
      const bool within = std::ranges::any_of(parts, [&](const GradientPart& p) {
        return p.shards.begin < s + step && s + step < p.shards.end;
      });
      if (!within) out.push_back({part_from(parts, s), part_from(parts, s + step)});
    }
  return out;
}

ElementOwners::ElementOwners(size_t elements, int hosts, size_t multiple, size_t piece)
    : elements_(elements),
      multiple_(multiple),
      bucket_(rounded_up(piece, multiple) * static_cast<size_t>(hosts)),
      hosts_(hosts) {}

Bucket ElementOwners::bucket(size_t b) const {
  return {b * bucket_, std::min(elements_, (b + 1) * bucket_)};
}

Bucket ElementOwners::piece(size_t b, int host) const {
  return part_of(bucket(b), host, hosts_, multiple_);
}

Bucket part_of(const Bucket& bucket, int64_t i, int64_t count, size_t multiple) {
  const size_t units = rounded_up(bucket.count(), multiple) / multiple;
  const auto end_of = [&](int64_t parts) {
    const size_t end = units * static_cast<size_t>(parts) / static_cast<size_t>(count);
    return std::min(bucket.end, bucket.begin + end * multiple);
  };
  return {end_of(i), end_of(i + 1)};
}

HostTraffic gradient_traffic(const std::vector<GradientPart>& parts, const ElementOwners& owners,
                             size_t bucket, int host) {
  // Bytes that this host and the others send for one element, and in how many messages.
  uint64_t own_bytes = 0, own_parts = 0, other_bytes = 0, other_parts = 0;
  for (const GradientPart& p : parts) {
    (p.host == host ? own_bytes : other_bytes) += p.element_bytes();
    ++(p.host == host ? own_parts : other_parts);
  }
  const uint64_t own = owners.piece(bucket, host).count();
  uint64_t receivers = 0;
  for (int h = 0; h < owners.hosts(); ++h)
    if (h != host && owners.piece(bucket, h).count() > 0) ++receivers;
  return {.sent = (owners.bucket(bucket).count() - own) * own_bytes,
          .received = own * other_bytes,
          .messages = std::max(receivers * own_parts, own > 0 ? other_parts : 0)};
}

HostTraffic weight_traffic(const ElementOwners& owners, size_t bucket, int host) {
  const uint64_t own = owners.piece(bucket, host).count();
  const auto others = static_cast<uint64_t>(owners.hosts() - 1);
  uint64_t senders = 0;
  for (int h = 0; h < owners.hosts(); ++h)
    if (h != host && owners.piece(bucket, h).count() > 0) ++senders;
  return {.sent = own * sizeof(float) * others,
          .received = (owners.bucket(bucket).count() - own) * sizeof(float),
          .messages = std::max(senders, own > 0 ? others : 0)};
}

ExchangeBytes exchange_bytes(const std::vector<GradientPart>& parts, const ElementOwners& owners,
                             int host) {
  ExchangeBytes out;
  for (size_t b = 0; b < owners.buckets(); ++b) {
    out.gradients += gradient_traffic(parts, owners, b, host).sent;
    out.weights += weight_traffic(owners, b, host).sent;
  }
  return out;
}

}  // namespace dpt
