#include "parallel/topology.h"

#include <algorithm>

#include "base/error.h"

namespace dpt {

Rows Topology::ranks_of_host(int h) const {
  const auto at = static_cast<size_t>(h);
  if (first_ranks.empty()) return {0, ranks};
  return {first_ranks[at], at + 1 < first_ranks.size() ? first_ranks[at + 1] : ranks};
}

Rows Topology::workers_of_host(int h) const {
  const Rows own = ranks_of_host(h);
  return {own.begin * workers_per_rank(), own.end * workers_per_rank()};
}

Rows Topology::shards_of_host(int h) const {
  Rows out{shards, 0};
  for (int s = 0; s < shards; ++s)
    if (host_of_shard(s) == h) out = {std::min<int64_t>(out.begin, s), s + 1};
  return out.end == 0 ? Rows{} : out;
}

int Topology::host_of_shard(int shard) const {
  const int rank = rank_of(owner(shard));
  const auto next = std::ranges::upper_bound(first_ranks, rank);
  return first_ranks.empty() ? 0 : static_cast<int>(next - first_ranks.begin()) - 1;
}

int Topology::owner(int shard, int device) const {
  const auto lane = static_cast<int>(int64_t{shard} * replicas() * workers_per_device / shards);
  return (lane / workers_per_device * devices_per_replica + device) * workers_per_device +
         lane % workers_per_device;
}

int Topology::loss_owner(int shard) const {
  if (loss_device < 0) return owner(shard);
  const int first = rank_of(owner(shard)) * workers_per_rank() + loss_device * workers_per_device;
  return first + owner(shard) % workers_per_device;
}

std::vector<int> Topology::shards_of(int worker) const {
  std::vector<int> out;
  for (int s = 0; s < shards; ++s)
    if (owner(s, device_of(worker)) == worker) out.push_back(s);
  return out;
}

Rows Topology::shards_of_rank(int rank) const {
  const int first = replica(rank * workers_per_rank());
  const int last = replica((rank + 1) * workers_per_rank() - 1);
  Rows out{shards, 0};
  for (int s = 0; s < shards; ++s)
    if (const int r = replica(owner(s)); first <= r && r <= last)
      out = {std::min<int64_t>(out.begin, s), s + 1};
  return out.end == 0 ? Rows{} : out;
}

Rows Topology::workers_with(int worker) const {
  if (!replicas_own_weights()) return {0, total_workers()};
  const int of_replica = workers_per_device * devices_per_replica;
  const int64_t first = int64_t{replica(worker)} * of_replica;
  return {first, first + of_replica};
}

Rows Topology::shards_with(int worker) const {
  if (!replicas_own_weights()) return {0, shards};
  Rows out{shards, 0};
  for (int s = 0; s < shards; ++s)
    if (replica(owner(s)) == replica(worker)) out = {std::min<int64_t>(out.begin, s), s + 1};
  return out.end == 0 ? Rows{} : out;
}

Rows Topology::replica_of(int shard, bool all) const {
  if (all) return {0, shards};
  const auto device = [this](int s) { return owner(s) / workers_per_device; };
  Rows out{shard, shard + 1};
  while (out.begin > 0 && device(static_cast<int>(out.begin) - 1) == device(shard)) --out.begin;
  while (out.end < shards && device(static_cast<int>(out.end)) == device(shard)) ++out.end;
  return out;
}

std::vector<Rows> Topology::shard_groups(bool alone) const {
  std::vector<Rows> out;
  for (int s = 0; s < shards; ++s) {
    if (!alone && s > 0 && owner(s) == owner(s - 1) && loss_owner(s) == loss_owner(s - 1)) {
      ++out.back().end;
    } else {
      out.push_back({s, s + 1});
    }
  }
  return out;
}

std::vector<Rows> chunk(int64_t n, int parts) {
  std::vector<Rows> out;
  for (int p = 0; p < parts; ++p) out.push_back(chunk(n, parts, p));
  return out;
}

Rows chunk(int64_t n, int parts, int part) {
  const int64_t size = (n + parts - 1) / parts;
  return {std::min(n, part * size), std::min(n, (part + 1) * size)};
}

std::vector<Rows> rows_of_shards(const Topology& topology, const std::vector<int64_t>& batches) {
  std::vector<Rows> out;
  if (topology.reproducible) {
    require(batches.size() == 1, "reproducible runs have one order of samples");
    for (int64_t s = 0; s < topology.shards; ++s)
      out.push_back({batches[0] * s / topology.shards, batches[0] * (s + 1) / topology.shards});
    return out;
  }
  const int orders = static_cast<int>(batches.size());
  require(topology.shards == topology.replicas() * topology.workers_per_device &&
              topology.replicas() % orders == 0,
          "a shard for each worker of a replica's device, whole replicas for each batch");
  for (int64_t n : batches)
    for (const Rows& device : chunk(n, topology.replicas() / orders))
      for (const Rows& piece : chunk(device.count(), topology.workers_per_device))
        out.push_back({device.begin + piece.begin, device.begin + piece.end});
  return out;
}

}  // namespace dpt
