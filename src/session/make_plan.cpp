#include "session/make_plan.h"

#include <algorithm>
#include <any>
#include <utility>

#include "graph/attrs.h"
#include "session/gpu_share.h"
#include "session/gradient_buckets.h"
#include "session/programs.h"

namespace dpt {
namespace {

PlanTarget::Buckets buckets_of(const Session& s, int device, const PipelineSchedule& schedule) {
  const GpuShare share(s, device);
  PlanTarget::Buckets out{.buckets = gradient_buckets(s, share), .made_after = {}};
  out.made_after =
      schedule.empty()
          ? made_after(s.programs.rbegin()->second, out.buckets)
          : made_after_ops(s, share, schedule[static_cast<size_t>(device)], out.buckets);
  return out;
}

std::vector<PlanTarget::StageCopy> copies_of(const Graph& graph) {
  std::vector<PlanTarget::StageCopy> out;
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    if (const auto* const copy = std::any_cast<Copy>(&graph.nodes[i].attrs))
      out.push_back({.part = graph.part[i],
                     .stage = graph.nodes[i].stage,
                     .from = copy->from,
                     .to = copy->to});
  return out;
}

PlanTarget target_of(const Session& s) {
  PlanTarget out{.topology = s.topology,
                 .gpus = s.on_gpu(),
                 .by_host = s.sums_on_host(),
                 .shards_states = s.exchange.shard_states,
                 .gradients = {},
                 .schedule = schedule_of(s),
                 .stage_device = s.graph.stage_device,
                 .stages_are_processes = s.stages_are_processes(),
                 .copies = copies_of(s.graph)};
  if (s.on_gpu() && s.topology.replicas() > 1)
    for (int d = 0; d < s.topology.devices_per_replica; ++d)
      out.gradients.push_back(buckets_of(s, d, out.schedule));
  return out;
}

}  // namespace

Plan make_plan(const Session& s) {
  const bool masks =
      std::ranges::any_of(s.graph.values, [](const Value& v) { return v.role == Role::mask; });
  Plan plan = basic_plan({.gpus = s.on_gpu(),
                          .divisor_from_targets = s.divisor == Divisor::targets,
                          .clip_norm = s.spec.clip.max_norm.has_value() || s.scaler.on,
                          .measures = s.measures(),
                          .torch_masks = masks,
                          .compresses = s.exchange.compress.has_value(),
                          .forward_sync_points = s.graph.sync_points(Part::forward),
                          .backward_sync_points = s.graph.sync_points(Part::backward),
                          .sync_across_replicas = s.spec.sync_batch_norm,
                          .accumulates = s.batches->accumulate() > 1});
  return s.mode->rewrite(std::move(plan), target_of(s));
}

}  // namespace dpt
