#include "graph/program/plan.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/count.h"

namespace dpt {
namespace {

constexpr std::string_view kActionNames[] = {
    "load",     "load_targets", "draw_masks",  "prologue",          "forward",
    "loss",     "backward",     "gather",      "scatter",           "sum_divisor",
    "sum_loss", "compress",     "sum_squares", "sum_shards, update"};
constexpr std::string_view kActorNames[] = {"each shard", "loss device", "pipeline", "each worker",
                                            "first worker"};

// "F0 F1 B0 B1", or "0F0 2F0" if the device has several stages.
std::string ops_of(const std::vector<StageOp>& ops) {
  const bool several =
      std::ranges::any_of(ops, [&](const StageOp& op) { return op.stage != ops[0].stage; });
  std::vector<std::string> out;
  for (const StageOp& op : ops)
    out.push_back(fmt::format("{}{}{}", several ? std::to_string(op.stage) : "",
                              op.backward ? 'B' : 'F', op.chunk));
  return fmt::format("{}", fmt::join(out, " "));
}

}  // namespace

int Plan::sync_points(Action a) const {
  if (a == Action::forward) return forward_sync_points;
  return a == Action::backward ? backward_sync_points : 0;
}

int Plan::barriers(int64_t micro_batches) const {
  if (!schedule.empty()) micro_batches = 1;  // the schedule covers all micro-batches
  const auto count = [](const std::vector<PlanStep>& stages, PlanStep::Barrier barrier) {
    return std::ranges::count_if(
        stages, [&](const PlanStep& s) { return s.barrier == barrier && !s.when_measured; });
  };
  using enum PlanStep::Barrier;
  return static_cast<int>(count(prologue, always) + count(micro, always) * micro_batches +
                          count(micro, between) * (micro_batches - 1) + count(update, always));
}

bool Plan::splits_shards() const {
  return sync_points() > 0 || !schedule.empty() ||
         std::ranges::count_if(micro, [](const PlanStep& s) {
           return s.actor == PlanStep::Actor::shards || s.actor == PlanStep::Actor::first;
         }) > 1;
}

std::string Plan::str() const {
  std::string out;
  const std::pair<std::string_view, const std::vector<PlanStep>*> parts[] = {
      {"once a step", &prologue}, {"each micro-batch", &micro}, {"update", &update}};
  for (const auto& [name, stages] : parts) {
    if (stages->empty()) continue;
    out += fmt::format("{}:\n", name);
    for (const PlanStep& s : *stages) {
      std::vector<std::string> actions;
      for (Action a : s.actions) {
        actions.emplace_back(kActionNames[static_cast<size_t>(a)]);
        if (a == Action::sum_squares && s.when_measured) actions.back() += " (recorded steps)";
        if (const int n = sync_points(a); n > 0)
          actions.back() += fmt::format(" ({} over shards)", counted(n, "sum"));
      }
      if (!actions.empty())
        out += fmt::format("  {:<12} {}\n", kActorNames[static_cast<size_t>(s.actor)],
                           fmt::join(actions, ", "));
      if (s.actor == PlanStep::Actor::pipeline)
        for (size_t d = 0; d < schedule.size(); ++d)
          out += fmt::format("    device {:<5} {}\n", d, ops_of(schedule[d]));
      if (s.barrier != PlanStep::Barrier::never)
        out += fmt::format("  all          barrier{}\n", s.barrier == PlanStep::Barrier::between
                                                             ? ", if another micro-batch follows"
                                                         : s.when_measured ? " (recorded steps)"
                                                                           : "");
    }
  }
  return out;
}

Plan basic_plan(const PlanQuery& query) {
  using Actor = PlanStep::Actor;
  Plan plan;
  plan.forward_sync_points = query.forward_sync_points;
  plan.backward_sync_points = query.backward_sync_points;
  plan.sync_across_replicas = query.sync_across_replicas;
  plan.accumulates = query.accumulates;
  if (query.divisor_from_targets) {
    plan.prologue.push_back({Actor::shards, {Action::load_targets, Action::prologue}});
    plan.prologue.push_back({Actor::workers, {Action::sum_divisor}});
  }
  if (query.torch_masks) plan.micro.push_back({Actor::first, {Action::draw_masks}});
  plan.micro.push_back(
      {Actor::shards, {Action::load, Action::forward, Action::loss, Action::backward}});
  if (query.compresses) plan.update.push_back({Actor::shards, {Action::compress}});
  plan.update.push_back({Actor::workers, {Action::sum_loss}});
  if (query.clip_norm || query.measures) {
    plan.update.back().actions.push_back(Action::sum_squares);
    plan.update.back().when_measured = !query.clip_norm;
    plan.update.push_back({Actor::workers, {}});
  }
  plan.update.back().actions.push_back(Action::update);
  return plan;
}

void run_in_stages(Plan& plan, PipelineSchedule schedule) {
  for (PlanStep& s : plan.micro) {
    if (s.actor == PlanStep::Actor::shards) s.actor = PlanStep::Actor::pipeline;
    // One schedule covers all micro-batches
    if (s.barrier == PlanStep::Barrier::between) s.barrier = PlanStep::Barrier::never;
  }
  plan.schedule = std::move(schedule);
}

}  // namespace dpt
