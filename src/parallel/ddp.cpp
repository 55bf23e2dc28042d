// ddp: torch.nn.parallel.DistributedDataParallel. One process per device, samples assigned as by
// DistributedSampler, gradients summed over all ranks.
//
// On CPUs, ranks have weights, gradients and optimizer states in shared memory. The sum over ranks
// is then the sum over shards, each range of weights is updated once and read by all, and nothing
// is broadcast: the plan is that of `single`, with barriers across processes. On GPUs each rank has
// its own copies, and NCCL sums gradients (engine/gpu/exchange.h).
#include <algorithm>

#include "parallel/mode.h"
#include "parallel/rewrites.h"

namespace dpt::modes {
namespace {

struct DistributedDataParallel : ExchangeKeys, GpuExchangeKeys {
  static constexpr Usage kUsage{"torch.nn.parallel.DistributedDataParallel",
                                "parallel: {ddp: 2}\n"
                                "parallel: {ddp: {devices: 4, timeout: 120, shard: optimizer, "
                                "compress: fp16, backend: nccl,\n"
                                "    bucket_cap_mb: 10}}"};

  std::optional<int64_t> devices;
  std::optional<double> timeout;
  static KeyTable<DistributedDataParallel> keys() {
    KeyTable<DistributedDataParallel> table;
    table.optional(kDevicesKey, &DistributedDataParallel::devices, kDevicesDoc, kDeviceCount)
        .optional("timeout", &DistributedDataParallel::timeout,
                  "seconds without a heartbeat after which a rank counts as lost (60; with several "
                  "hosts at most 15). Each process sends one per second, even during a long step "
                  "or save. Also how long ranks of torchrun, srun or mpirun wait for each other at "
                  "the start, and hosts for data that does not move",
                  kPositive);
    ExchangeKeys::add(table);
    GpuExchangeKeys::add(table);
    return table;
  }
};

// The number of ranks that a launcher started overrides the number of devices in the spec.
Topology topology(const std::any&, const ModeQuery& query) {
  ModeQuery q = query;
  if (q.world) q.devices = *q.world * query.devices_per_replica;
  return place_workers(q, std::clamp(query.machine_cores / query.devices_per_replica, 2, 4), true);
}

Plan rewrite(Plan plan, const PlanTarget& target) {
  plan.mode = "ddp";
  return share_gradients(place_stages(std::move(plan), target), target);
}

std::optional<double> timeout(const std::any& settings) {
  return std::any_cast<const DistributedDataParallel&>(settings).timeout;
}

std::optional<int64_t> devices(const std::any& settings) {
  return std::any_cast<const DistributedDataParallel&>(settings).devices;
}

Exchange exchange(const std::any& settings) {
  const auto& s = std::any_cast<const DistributedDataParallel&>(settings);
  Exchange out = s.exchange();
  s.set(out);
  return out;
}

}  // namespace

ModeType ddp() {
  return {registry_entry<DistributedDataParallel>(
              "ddp",
              "DistributedDataParallel: one process per device; gradients are summed over "
              "all processes."),
          topology,
          rewrite,
          timeout,
          true,
          nullptr,
          exchange,
          devices};
}

}  // namespace dpt::modes
