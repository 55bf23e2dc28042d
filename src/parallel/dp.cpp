// dp: torch.nn.DataParallel. Several devices in one process. The batch is scattered over them as by
// torch.chunk; one optimizer step follows. The loss is computed on the gathered outputs on one
// device, device 0 or `output_device`; with `loss: distributed` each replica computes its own part.
// Both give the same numbers, because a loss divides by the global batch (layers/loss.h, Note
// [divisor]).
#include <algorithm>

#include "base/fail.h"
#include "parallel/mode.h"
#include "parallel/rewrites.h"

namespace dpt::modes {
namespace {

struct DataParallel : GpuExchangeKeys {
  static constexpr Usage kUsage{
      "torch.nn.DataParallel",
      "parallel: {dp: 2}\n"
      "parallel: {dp: {devices: 2, loss: gathered, output_device: 1, backend: gloo,\n"
      "    bucket_cap_mb: 10}}"};

  std::optional<int64_t> devices;
  std::string loss = "gathered";
  int64_t output_device = 0;

  static KeyTable<DataParallel> keys() {
    KeyTable<DataParallel> table;
    table.optional(kDevicesKey, &DataParallel::devices, kDevicesDoc, kDeviceCount)
        .choice("loss", &DataParallel::loss, {"gathered", "distributed"},
                "where the loss is computed: on one device from the gathered output, or on "
                "each replica for its own samples")
        .optional("output_device", &DataParallel::output_device,
                  "device on which outputs are gathered", kNotNegative);
    add(table);
    return table;
  }

  static void check(const DataParallel& s, const Owner& owner, Diagnostics& d) {
    if (s.loss == "distributed" && owner.given("output_device"))
      d.error(
          owner.at("output_device"),
          "'output_device' is where outputs are gathered, and 'loss: distributed' gathers none; "
          "leave one of the two out");
  }
};

Topology topology(const std::any& settings, const ModeQuery& query) {
  const auto& s = std::any_cast<const DataParallel&>(settings);
  if (query.devices_per_replica > 1)
    fail(
        Fault::spec,
        "parallel mode 'dp' copies the whole model to each device, but layers are placed on {} "
        "devices; write `parallel: ddp`, whose replicas may span devices, or leave out `device` of "
        "the layers",
        query.devices_per_replica);
  Topology topology = place_workers(query, std::clamp(query.machine_cores, 2, 4), false);
  if (s.output_device >= topology.devices_per_rank)
    fail(Fault::spec, "output_device {} is not one of the {} devices 0..{}", s.output_device,
         topology.devices_per_rank, topology.devices_per_rank - 1);
  if (s.loss == "gathered" && topology.devices_per_rank > 1)
    topology.loss_device = static_cast<int>(s.output_device);
  return topology;
}

Plan rewrite(Plan plan, const PlanTarget& target) {
  plan.mode = "dp";
  return share_gradients(gather_for_loss(std::move(plan), target), target);
}

std::optional<int64_t> devices(const std::any& settings) {
  return std::any_cast<const DataParallel&>(settings).devices;
}

Exchange exchange(const std::any& settings) {
  Exchange out;
  std::any_cast<const DataParallel&>(settings).set(out);
  return out;
}

}  // namespace

ModeType dp() {
  return {registry_entry<DataParallel>(
              "dp", "DataParallel: one process scatters each batch over several devices."),
          topology,
          rewrite,
          nullptr,
          false,
          nullptr,
          exchange,
          devices};
}

}  // namespace dpt::modes
