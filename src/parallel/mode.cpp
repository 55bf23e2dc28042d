#include "parallel/mode.h"

#include <algorithm>

#include "base/count.h"
#include "base/fail.h"

namespace dpt {

Choice mode_choice(std::string_view name) {
  const auto at = std::ranges::find(mode_table(), name, &RegistryEntry::name);
  require(at != mode_table().end(), "a mode of that name");
  Diagnostics none;
  return {.what = &*at, .settings = at->decode(Node{}, {std::string(name), {}}, none), .where = {}};
}

std::optional<int64_t> devices_asked(const Choice& parallel, std::optional<int64_t> devices) {
  const auto& mode = *static_cast<const ModeType*>(parallel.what);
  const auto own = mode.devices ? mode.devices(parallel.settings) : std::optional<int64_t>{};
  if (own && devices && *own != *devices)
    fail(Fault::spec,
         "`devices` is {}, but `parallel: {{{}: ...}}` asks for {}; write one of the two, "
         "or the same number in both",
         *devices, mode.name, counted(*own, "device"));
  return own ? own : devices;
}

Topology place_workers(const ModeQuery& query, int preferred_replicas, bool processes) {
  const int devices = query.devices.value_or(preferred_replicas * query.devices_per_replica);
  if (devices % query.devices_per_replica != 0)
    fail(Fault::spec,
         "the layers of a replica are placed on {0} devices, so {1} devices cannot be divided into "
         "replicas; use `devices: {2}`",
         query.devices_per_replica, devices,
         (devices / query.devices_per_replica + 1) * query.devices_per_replica);
  Topology out;
  out.devices_per_replica = query.devices_per_replica;
  out.devices_per_rank = processes ? query.devices_per_replica : devices;
  out.ranks = devices / out.devices_per_rank;
  out.workers_per_device = query.cores.value_or(std::max(1, query.machine_cores / devices));
  out.shards = query.shards.value_or(out.replicas() * out.workers_per_device);
  out.reproducible = query.shards.has_value();
  out.per_replica_sampling = processes && !out.reproducible;
  if (out.total_workers() > 1024 * query.hosts)
    fail(Fault::spec,
         "{} devices with {} cores each are {} workers; at most 1024 are possible{}, so lower "
         "`devices` or `cores`",
         devices, out.workers_per_device, out.total_workers(),
         query.hosts > 1 ? " on each host" : "");
  return out;
}

}  // namespace dpt
