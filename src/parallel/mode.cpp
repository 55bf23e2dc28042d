#include "parallel/mode.h"

#include <algorithm>

#include "base/count.h"
#include "base/fail.h"

namespace dpt {

Choice mode_choice(std::string_view name) {
  const auto at = std::ranges::find(mode_table(), name, &Nameable::name);
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
  const int devices = query.devices.value_or(preferred_replicas * query.span);
  if (devices % query.span != 0)
    fail(Fault::spec,
         "the layers are placed on {0} devices, which {1} devices are no multiple of; take "
         "`devices: {2}`",
         query.span, devices, (devices / query.span + 1) * query.span);
  Topology out;
  out.span = query.span;
  out.devices = processes ? query.span : devices;
  out.ranks = devices / out.devices;
  out.workers = query.cores.value_or(std::max(1, query.machine_cores / devices));
  out.shards = query.shards.value_or(out.replicas() * out.workers);
  out.reproducible = query.shards.has_value();
  out.dealt = processes && !out.reproducible;
  if (out.total_workers() > 1024)
    fail(Fault::spec, "{} devices with {} cores each are {} workers; at most 1024 are possible",
         devices, out.workers, out.total_workers());
  return out;
}

void share_update(Plan& plan, const Topology& who) {
  using enum Stage::Meet;
  if (who.total_workers() == 1) return;
  for (Stage& s : plan.prologue)
    if (s.who == Stage::Who::shards) s.meet = always;
  bool still_read = plan.cuts() == 1 && who.replicas_meet(plan.cuts_sum_all);
  for (Stage& s : plan.micro)
    if (s.who == Stage::Who::first) {
      s.meet = always;
      still_read = true;
    }
  // The next micro-batch overwrites masks drawn by the first worker, and the sums of a single sync
  // point, while other workers may still read them.
  if (still_read && plan.accumulates) plan.micro.back().meet = between;
  for (Stage& s : plan.update) s.meet = always;
  if (plan.update.front().who != Stage::Who::shards)
    plan.update.insert(plan.update.begin(),
                       {.who = Stage::Who::workers, .actions = {}, .meet = always});
}

}  // namespace dpt
