#include "session/arenas.h"

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "base/checked.h"
#include "base/units.h"
#include "session/session.h"

namespace dpt {
namespace {

// Not a multiple of a page: arenas of several workers would compete for the same sets of a cache.
size_t stride_of(size_t bytes) { return (Checked(bytes).rounded_up(kPage) + 1088).size(); }

// Whether a group's activations outlive a plan step.
bool kept_by_group(const Session& s) {
  return s.plan.splits_shards() || s.model.test_sync_points > 0 ||
         s.model.layout.stored < s.model.layout.trainable;
}

// The most memory that any of the programs needs for a stage.
StageBytes most_of(std::initializer_list<const std::map<ShardGroupRows, Program>*> all, int stage) {
  StageBytes most{64, 0};
  for (const auto* programs : all)
    for (const auto& [rows, p] : *programs) {
      const StageBytes& need = p.arena[static_cast<size_t>(stage)];
      most.kept = std::max(most.kept, need.kept);
      most.scratch = std::max(most.scratch, need.scratch);
    }
  return most;
}

// The numbers of the shard groups of this host.
Rows own_groups(const Session& s) {
  const Rows shards = s.devices.topology.shards_of_host(s.devices.topology.host);
  const auto before = [&](int64_t shard) {
    return std::ranges::count_if(s.model.shard_groups,
                                 [&](const Rows& g) { return g.begin < shard; });
  };
  return {before(shards.begin), before(shards.end)};
}

}  // namespace

ArenaLayout::ArenaLayout(const Session& s)
    : scratch(static_cast<size_t>(s.devices.topology.devices_per_replica)),
      on(scratch.size()),
      by_group(kept_by_group(s)),
      groups(own_groups(s)),
      count(static_cast<size_t>(
          by_group ? groups.count()
                   : s.devices.topology.workers_of_host(s.devices.topology.host).count())) {
  std::vector<size_t> most(scratch.size());
  const auto take = [&](size_t device, size_t n) {
    return std::exchange(on[device], (Checked(on[device]) + n).size());
  };
  for (int i = 0; i < s.model.graph.stages(); ++i) {
    const StageBytes need = most_of({&s.model.programs, &s.model.test_programs}, i);
    const StageBytes last_need = most_of({&s.model.last_programs}, i);
    const auto device = static_cast<size_t>(s.model.graph.stage_device[static_cast<size_t>(i)]);
    const size_t slots = static_cast<size_t>(s.model.slots[static_cast<size_t>(i)]);
    const size_t stride = stride_of(need.kept);
    const size_t first = take(device, (Checked(stride) * slots).size());
    stages.push_back({.first = first, .stride = stride, .slots = slots, .last = on[device]});
    if (!s.model.last_programs.empty()) take(device, stride_of(last_need.kept));
    most[device] = std::max({most[device], need.scratch, last_need.scratch});
  }
  for (size_t d = 0; d < most.size(); ++d)
    if (most[d] > 0) scratch[d] = take(d, stride_of(most[d]));
  for (const size_t n : on) group_bytes = (Checked(group_bytes) + n).size();
  bytes = (Checked(count) * group_bytes).size();
}

Arenas::Arenas(const Session& s, std::byte* memory) {
  const ArenaLayout& layout = s.layout.arenas;
  const Topology& topology = s.devices.topology;
  const int64_t first_worker = topology.workers_of_host(topology.host).begin;
  for (int64_t g = 0; g < std::ssize(s.model.shard_groups); ++g) {
    if (g < layout.groups.begin || g >= layout.groups.end) {
      regions_.emplace_back();  // another host's
      continue;
    }
    const int first = static_cast<int>(s.model.shard_groups[static_cast<size_t>(g)].begin);
    const int64_t arena =
        layout.by_group ? g - layout.groups.begin : topology.owner(first) - first_worker;
    std::byte* at = memory + static_cast<size_t>(arena) * layout.group_bytes;
    std::vector<std::byte*> devices;
    for (const size_t n : layout.on) devices.push_back(std::exchange(at, at + n));
    add_group(s, devices);
  }
}

void Arenas::add_group(const Session& s, const std::vector<std::byte*>& of_devices) {
  const ArenaLayout& layout = s.layout.arenas;
  std::vector<Region>& regions = regions_.emplace_back();
  for (size_t i = 0; i < layout.stages.size(); ++i) {
    const ArenaLayout::Stage& stage = layout.stages[i];
    const auto device = static_cast<size_t>(s.model.graph.stage_device[i]);
    std::byte* const base = of_devices[device];
    regions.push_back({.first = base + stage.first,
                       .stride = stage.stride,
                       .slots = static_cast<int>(stage.slots),
                       .last = base + stage.last,
                       .scratch = base + layout.scratch[device]});
  }
}

std::byte* Arenas::kept(int group, int stage, int chunk, bool last) const {
  const Region& p = region(group, stage);
  if (last) return p.last;
  return p.first + static_cast<size_t>(chunk % p.slots) * p.stride;
}

}  // namespace dpt
