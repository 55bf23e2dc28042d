#include "session/memory.h"

#include <fmt/format.h>

#include "base/units.h"
#include "session/later_gradients.h"

namespace dpt {
namespace {

void add_parameters(const RunSettings& settings, const Devices& devices,
                    const SessionBatches& batches, const CompiledModel& model,
                    std::vector<DeviceUse>& out) {
  constexpr double kFloat = sizeof(float);
  const std::vector<int> homes = model.graph.homes();
  const auto device = [&](ValueId v) -> DeviceUse& {
    const auto stage = static_cast<size_t>(homes[static_cast<size_t>(v)]);
    return out[static_cast<size_t>(model.graph.stage_device[stage])];
  };
  // Gradients of each shard of a replica, and halves of them if they are compressed. A GPU has one
  // shard; with accumulation it has two buffers: the sum so far, and that of the current chunk.
  const double halves = devices.exchange.compress ? 0.5 : 0;
  const double copies = devices.on_gpu()
                            ? (batches.train->accumulate() > 1 ? 2 : 1) + halves
                            : devices.topology.shards * (1 + halves) / devices.topology.replicas();
  // CPUs of a machine partition the states, but the machine still stores all of them; those of
  // several machines store a part each. GPUs store all of them, or a part each.
  const int parts = !devices.on_gpu()               ? devices.topology.hosts()
                    : devices.exchange.shard_states ? devices.topology.replicas()
                                                    : 1;
  const double states = double{1} * settings.states() / parts;
  for (size_t p = 0; p < model.graph.parameters.size(); ++p) {
    const double bytes = static_cast<double>(model.graph[model.graph.parameters[p]].desc.bytes());
    DeviceUse& use = device(model.graph.parameters[p]);
    use.weights += bytes;
    if (model.graph.gradients[p] == kNoValue) continue;
    use.states += bytes * states;
    if (!model.layout.gradient_in_update[p]) use.gradients += bytes * copies;
  }
  for (ValueId v : model.graph.buffers)
    device(v).weights += kFloat * static_cast<double>(model.graph[v].desc.shape.elements());
  if (batches.train->accumulate() == 1 || devices.on_gpu()) return;
  for (size_t d = 0; d < out.size(); ++d)
    out[d].gradients +=
        devices.topology.workers_per_device *
        static_cast<double>(later_bytes(model.programs.begin()->second, [&](int stage) {
          return model.graph.stage_device[static_cast<size_t>(stage)] == static_cast<int>(d);
        }));
}

}  // namespace

std::vector<DeviceUse> device_uses(const Session& s) {
  std::vector<DeviceUse> out(static_cast<size_t>(s.devices.topology.devices_per_replica));
  const auto& devices = s.model.graph.stage_device;
  for (int stage = 0; stage < s.model.graph.stages(); ++stage)
    out[static_cast<size_t>(devices[static_cast<size_t>(stage)])].stages.push_back(stage);
  add_parameters(s.settings, s.devices, s.batches, s.model, out);
  const Topology& topology = s.devices.topology;
  const int64_t replicas =  // on this host
      topology.ranks_of_host(topology.host).count() * topology.devices_per_rank /
      topology.devices_per_replica;
  for (int d = 0; d < s.devices.topology.devices_per_replica; ++d)
    out[static_cast<size_t>(d)].activations =
        static_cast<double>(s.layout.arenas.bytes_on(d)) / static_cast<double>(replicas);
  return out;
}

std::string beyond_limit(const Session& s) {
  if (!s.settings.spec.memory_limit) return "";
  const std::vector<DeviceUse> uses = device_uses(s);
  for (size_t d = 0; d < uses.size(); ++d) {
    const DeviceUse& use = uses[d];
    if (use.total() <= *s.settings.spec.memory_limit * kMiB) continue;
    return fmt::format(
        "device {} would need {:.1f} MiB ({:.1f} of weights, {:.1f} of gradients, {:.1f} of "
        "optimizer states, {:.1f} of activations), but memory_limit is {:g} MiB; put layers on "
        "more devices (`device: {}` of a layer, or `parallel: {{pipeline: {{stages: {}}}}}`), "
        "recompute activations (`checkpoint`), or use a smaller batch",
        d, use.total() / kMiB, use.weights / kMiB, use.gradients / kMiB, use.states / kMiB,
        use.activations / kMiB, *s.settings.spec.memory_limit, uses.size(), uses.size() + 1);
  }
  return "";
}

}  // namespace dpt
