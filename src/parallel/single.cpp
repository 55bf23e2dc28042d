// single: one device, whose cores are workers, each with a shard of the batch.
#include "base/fail.h"
#include "parallel/mode.h"
#include "parallel/rewrites.h"

namespace dpt::modes {
namespace {

struct Single {
  static constexpr Usage kUsage{"", "parallel: single"};
  static KeyTable<Single> keys() { return {}; }
};

Topology topology(const std::any&, const ModeQuery& query) {
  if (query.devices.value_or(query.devices_per_replica) != query.devices_per_replica)
    fail(Fault::spec,
         "parallel mode 'single' uses {}, not {}; for several write `parallel: dp` or "
         "`parallel: ddp`",
         query.devices_per_replica == 1
             ? "one device"
             : fmt::format("the {} devices that layers are placed on", query.devices_per_replica),
         *query.devices);
  return place_workers(query, 1, false);
}

Plan rewrite(Plan plan, const PlanTarget& target) {
  plan.mode = "single";
  return share_gradients(place_stages(std::move(plan), target), target);
}

}  // namespace

ModeType single() {
  return {registry_entry<Single>("single", "One device, whose cores share each batch."), topology,
          rewrite};
}

}  // namespace dpt::modes
