// single: one device, whose cores are workers, each with a shard of the batch.
#include "base/fail.h"
#include "parallel/mode.h"

namespace dpt::modes {
namespace {

struct Single {
  static constexpr Usage kUsage{"", "parallel: single"};
  static KeyTable<Single> keys() { return {}; }
};

Topology topology(const std::any&, const ModeQuery& query) {
  if (query.devices.value_or(query.span) != query.span)
    fail(Fault::spec,
         "parallel mode 'single' uses {}, not {}; for several write `parallel: dp` or "
         "`parallel: ddp`",
         query.span == 1 ? "one device"
                         : fmt::format("the {} devices that layers are placed on", query.span),
         *query.devices);
  return place_workers(query, 1, false);
}

void rewrite(Plan& plan, const Topology& who) {
  plan.mode = "single";
  share_update(plan, who);
}

}  // namespace

ModeType single() {
  return {nameable<Single>("single", "One device, whose cores share each batch."), topology,
          rewrite};
}

}  // namespace dpt::modes
