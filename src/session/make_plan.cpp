#include "session/make_plan.h"

#include <algorithm>
#include <any>
#include <optional>
#include <utility>

#include "graph/attrs.h"
#include "session/gradient_buckets.h"
#include "session/programs.h"

namespace dpt {
namespace {

PlanTarget::Buckets buckets_of(const Session& s, int device, const PipelineSchedule& schedule) {
  const GpuShare& share = s.shares.gpus[static_cast<size_t>(device)];
  PlanTarget::Buckets out{.buckets = gradient_buckets(s.devices, s.model, share), .made_after = {}};
  out.made_after = schedule.empty()
                       ? made_after(s.model.programs.rbegin()->second, out.buckets)
                       : made_after_ops(s.batches, s.model, share,
                                        schedule[static_cast<size_t>(device)], out.buckets);
  return out;
}

std::vector<PlanTarget::StageCopy> copies_of(const Graph& graph) {
  std::vector<PlanTarget::StageCopy> out;
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    if (const auto* const copy = std::any_cast<Copy>(&graph.nodes[i].attrs))
      out.push_back({.part = graph.nodes[i].part,
                     .stage = graph.nodes[i].stage,
                     .from = copy->from,
                     .to = copy->to});
  return out;
}

PlanTarget target_of(const Session& s) {
  const std::optional<HostLayout>& hosts = s.shares.hosts;
  PlanTarget out{.topology = s.devices.topology,
                 .gpus = s.devices.on_gpu(),
                 .by_host = s.devices.sums_on_host(),
                 .shards_states = s.devices.exchange.shard_states,
                 .host_buckets = hosts ? hosts->owners().buckets() : 0,
                 .host_made_after = hosts ? hosts->made_after() : std::vector<size_t>(),
                 .gradients = {},
                 .schedule = schedule_of(s.devices, s.batches, s.model),
                 .stage_device = s.model.graph.stage_device,
                 .stages_are_processes = s.devices.stages_are_processes(),
                 .copies = copies_of(s.model.graph)};
  if (s.devices.on_gpu() && s.devices.topology.replicas() > 1)
    for (int d = 0; d < s.devices.topology.devices_per_replica; ++d)
      out.gradients.push_back(buckets_of(s, d, out.schedule));
  return out;
}

}  // namespace

Plan make_plan(const Session& s) {
  const bool masks = std::ranges::any_of(s.model.graph.values,
                                         [](const Value& v) { return v.role == Role::mask; });
  Plan plan =
      basic_plan({.gpus = s.devices.on_gpu(),
                  .divisor_from_targets = s.model.divisor == Divisor::targets,
                  .clip_norm = s.settings.spec.clip.max_norm.has_value() || s.precision.scaler.on,
                  .measures = s.settings.measures(),
                  .torch_masks = masks,
                  .compresses = s.devices.exchange.compress.has_value(),
                  .forward_sync_points = s.model.graph.sync_points(Part::forward),
                  .backward_sync_points = s.model.graph.sync_points(Part::backward),
                  .sync_across_replicas = s.settings.spec.sync_batch_norm,
                  .accumulates = s.batches.train->accumulate() > 1});
  return s.settings.mode->rewrite(std::move(plan), target_of(s));
}

int barriers_of_step(const Session& s) {
  const int64_t micro = s.batches.train->accumulate();
  const bool waits =
      !s.devices.on_gpu() && s.devices.topology.sync_needs_barrier(s.plan.sync_across_replicas);
  return s.plan.barriers(micro) + static_cast<int>(waits ? s.plan.sync_points() * micro : 0);
}

}  // namespace dpt
