#include "session/memory.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/units.h"
#include "session/arenas.h"
#include "session/later_gradients.h"
#include "session/measure_layout.h"

namespace dpt {
namespace {

void add_parameters(const Session& s, std::vector<DeviceUse>& out) {
  constexpr double kFloat = sizeof(float);
  const std::vector<int> homes = s.graph.homes();
  const auto device = [&](ValueId v) -> DeviceUse& {
    const auto stage = static_cast<size_t>(homes[static_cast<size_t>(v)]);
    return out[static_cast<size_t>(s.graph.stage_device[stage])];
  };
  // Gradients of each shard of a replica, and halves of them if they are compressed. A GPU has one
  // shard; with accumulation it has two buffers: the sum so far, and that of the current chunk.
  const double halves = s.exchange.compress ? 0.5 : 0;
  const double copies = s.on_gpu() ? (s.batches->accumulate() > 1 ? 2 : 1) + halves
                                   : s.topology.shards * (1 + halves) / s.topology.replicas();
  // CPUs of a machine partition the states, but the machine still stores all of them.
  const double states =
      s.states() / (s.on_gpu() && s.exchange.shard_states ? double{1} * s.topology.replicas() : 1);
  for (size_t p = 0; p < s.graph.parameters.size(); ++p) {
    const double bytes = static_cast<double>(s.graph[s.graph.parameters[p]].desc.bytes());
    DeviceUse& use = device(s.graph.parameters[p]);
    use.weights += bytes;
    if (s.graph.gradients[p] == kNoValue) continue;
    use.states += bytes * states;
    if (!s.layout.gradient_in_update[p]) use.gradients += bytes * copies;
  }
  for (ValueId v : s.graph.buffers)
    device(v).weights += kFloat * static_cast<double>(s.graph[v].desc.shape.elements());
  if (s.batches->accumulate() == 1 || s.on_gpu()) return;
  for (size_t d = 0; d < out.size(); ++d)
    out[d].gradients +=
        s.topology.workers_per_device *
        static_cast<double>(later_bytes(s.programs.begin()->second, [&](int stage) {
          return s.graph.stage_device[static_cast<size_t>(stage)] == static_cast<int>(d);
        }));
}

}  // namespace

Buffers::Sizes buffer_sizes(const Session& s) {
  size_t sums = 0;
  for (const auto* programs : {&s.programs, &s.test_programs})
    for (const auto& [rows, program] : *programs) sums = std::max(sums, program.sum_bytes);
  return {.weights = s.layout.total,
          // Gradients of a GPU are in its own memory, unless the host sums them.
          .stored = s.on_gpu() && !s.sums_on_host() ? 0 : s.layout.stored,
          .halved = s.exchange.compress && (!s.on_gpu() || s.sums_on_host()) ? s.layout.stored : 0,
          .trainable = s.layout.trainable,
          .states = s.own_states() ? 0 : s.states(),
          .shards = s.topology.shards,
          .sums = sums,
          .activations = s.on_gpu() ? 0 : Arenas::bytes(s),
          .window = s.own_states() ? std::min(kStateWindow, s.layout.trainable) : 0,
          .metrics = s.metrics.size(),
          .measures = MeasureLayout(s).elements()};
}

std::vector<DeviceUse> device_uses(const Session& s) {
  std::vector<DeviceUse> out(static_cast<size_t>(s.topology.devices_per_replica));
  const auto& devices = s.graph.stage_device;
  for (int stage = 0; stage < s.graph.stages(); ++stage)
    out[static_cast<size_t>(devices[static_cast<size_t>(stage)])].stages.push_back(stage);
  add_parameters(s, out);
  for (int d = 0; d < s.topology.devices_per_replica; ++d)
    out[static_cast<size_t>(d)].activations =
        static_cast<double>(Arenas::bytes_on(s, d)) / s.topology.replicas();
  return out;
}

std::string beyond_limit(const Session& s) {
  if (!s.spec.memory_limit) return "";
  const std::vector<DeviceUse> uses = device_uses(s);
  for (size_t d = 0; d < uses.size(); ++d) {
    const DeviceUse& use = uses[d];
    if (use.total() <= *s.spec.memory_limit * kMiB) continue;
    return fmt::format(
        "device {} would need {:.1f} MiB ({:.1f} of weights, {:.1f} of gradients, {:.1f} of "
        "optimizer states, {:.1f} of activations), but memory_limit is {:g} MiB; put layers on "
        "more devices (`device: {}` of a layer, or `parallel: {{pipeline: {{stages: {}}}}}`), "
        "recompute activations (`checkpoint`), or use a smaller batch",
        d, use.total() / kMiB, use.weights / kMiB, use.gradients / kMiB, use.states / kMiB,
        use.activations / kMiB, *s.spec.memory_limit, uses.size(), uses.size() + 1);
  }
  return "";
}

}  // namespace dpt
