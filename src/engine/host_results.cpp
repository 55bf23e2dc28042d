#include "engine/host_results.h"

#include <cstring>
#include <span>

#include "base/fail.h"
#include "engine/host_messages.h"

namespace dpt {

HostResults::HostResults(const Session& session, const Buffers& buffers, Link& link)
    : session_(session), buffers_(buffers), link_(link) {
  require(link.hosts() == session.devices.topology.hosts() &&
              link.host() == session.devices.topology.host,
          "a link between the session's hosts");
}

// of(shard): `record` bytes in the buffers.
template <class Of>
void HostResults::gather(uint32_t tag, size_t record, Of of) {
  if (record == 0) return;
  const Topology& topology = session_.devices.topology;
  const auto shards = static_cast<size_t>(topology.shards);
  if (bytes_.size() < shards * record) bytes_.resize(shards * record);
  const auto records = [&](const Rows& of_shards) {
    return std::span(bytes_).subspan(record * static_cast<size_t>(of_shards.begin),
                                     record * static_cast<size_t>(of_shards.count()));
  };
  const auto slot = [&](int64_t shard) { return records({shard, shard + 1}).data(); };
  const Rows own = topology.shards_of_host(topology.host);
  for (int64_t s = own.begin; s < own.end; ++s)
    std::memcpy(slot(s), of(static_cast<int>(s)), record);
  std::vector<std::span<std::byte>> frames;
  for (int h = 0; h < topology.hosts(); ++h) frames.push_back(records(topology.shards_of_host(h)));
  all_gather(link_, tag, frames);
  for (int s = 0; s < topology.shards; ++s)
    if (s < own.begin || s >= own.end) std::memcpy(of(s), slot(s), record);
}

void HostResults::gather_sums(size_t offset, size_t count) {
  gather(HostTag::sums, count * sizeof(double),
         [&](int shard) { return buffers_.sums(shard) + offset; });
}

void HostResults::gather_evaluation() {
  gather(HostTag::evaluation, sizeof(ShardResult),
         [&](int shard) { return &buffers_.evaluation(shard); });
  gather(HostTag::metrics, buffers_.sizes().metrics * sizeof(double),
         [&](int shard) { return buffers_.metrics(shard).data(); });
}

void HostResults::gather_non_finite() {
  gather(HostTag::non_finite, sizeof(NonFinite),
         [&](int shard) { return &buffers_.non_finite(shard); });
}

void HostResults::send_statistics() {
  const FlatLayout& flat = session_.model.layout;
  broadcast(link_, HostTag::statistics,
            std::as_writable_bytes(
                std::span(buffers_.weights() + flat.trainable, flat.total - flat.trainable)));
}

}  // namespace dpt
