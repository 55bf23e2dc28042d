#include "session/layout.h"

#include <algorithm>

#include "session/session.h"

namespace dpt {
namespace {

std::optional<ShardRange> own_shards(const Topology& topology) {
  if (topology.hosts() == 1) return {};
  const Rows own = topology.shards_of_host(topology.host);
  return ShardRange{static_cast<int>(own.begin), static_cast<int>(own.count())};
}

}  // namespace

ElementShares make_shares(const Session& s) {
  const Topology& topology = s.devices.topology;
  ElementShares out;
  if (s.devices.cpus_span_hosts()) out.hosts.emplace(s);
  for (int d = 0; s.devices.on_gpu() && d < topology.devices_per_replica; ++d)
    out.gpus.emplace_back(s.devices, s.model, d);
  out.workers =
      out.hosts ? partition_update(out.hosts->owners(), topology)
                : partition_update(s.model.programs.begin()->second, s.model.layout,
                                   s.batches.global_batch, topology, s.parameter_groups.matrices);
  return out;
}

MemoryLayout make_memory_layout(const Session& s) {
  MemoryLayout out{.arenas = ArenaLayout(s),
                   .measures = MeasureLayout(s.settings.spec, s.devices, s.model),
                   .buffers = {}};
  size_t sums = 0;
  for (const auto* programs : {&s.model.programs, &s.model.test_programs})
    for (const auto& [rows, program] : *programs) sums = std::max(sums, program.sum_bytes);
  // Gradients of a GPU are in its own memory, unless the host sums them.
  const size_t stored = s.devices.on_gpu() && !s.devices.sums_on_host() ? 0 : s.model.layout.stored;
  const bool own_states = s.devices.own_states();
  out.buffers = {
      .weights = s.model.layout.total,
      .stored = stored,
      .halved = s.devices.exchange.compress ? stored : 0,
      .trainable = s.model.layout.trainable,
      .states = own_states ? 0 : s.settings.states(),
      .replicas = s.devices.topology.replicas_own_weights() ? s.devices.topology.replicas() : 1,
      .shards = s.devices.topology.shards,
      .own_shards = own_shards(s.devices.topology),
      .sums = sums,
      .activations = s.devices.on_gpu() ? 0 : out.arenas.bytes,
      .window = own_states ? std::min(kStateWindow, s.model.layout.trainable) : 0,
      .metrics = s.metrics.size(),
      .measures = out.measures.elements(),
      .staging = s.shares.hosts ? s.shares.hosts->staging_bytes() : 0};
  return out;
}

}  // namespace dpt
