// single: one device, whose cores are workers, each with a shard of the batch.
#include "parallel/mode.h"
#include "parallel/rewrites.h"

namespace dpt::modes {
namespace {

struct Single {
  static constexpr Usage kUsage{"", "parallel: single"};
  static KeyTable<Single> keys() { return {}; }
};

// The spec's `devices` is the number for other modes: `parallel=single` alone changes the mode.
Topology topology(const std::any&, const ModeQuery& query) {
  ModeQuery one = query;
  one.devices = query.devices_per_replica;
  return place_workers(one, 1, false);
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
