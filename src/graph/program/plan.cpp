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
    "feed",     "feed_targets", "draw_masks",  "prologue",          "forward",
    "loss",     "backward",     "gather",      "scatter",           "sum_divisor",
    "sum_loss", "compress",     "sum_squares", "sum_shards, update"};
constexpr std::string_view kWhoNames[] = {"each shard", "loss device", "pipeline", "each worker",
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

int Plan::cuts(Action a) const {
  if (a == Action::forward) return forward_cuts;
  return a == Action::backward ? backward_cuts : 0;
}

int Plan::meetings(int64_t micro_batches) const {
  if (!schedule.empty()) micro_batches = 1;  // the schedule covers all micro-batches
  const auto count = [](const std::vector<Stage>& stages, Stage::Meet meet) {
    return std::ranges::count(stages, meet, &Stage::meet);
  };
  using enum Stage::Meet;
  return static_cast<int>(count(prologue, always) + count(micro, always) * micro_batches +
                          count(micro, between) * (micro_batches - 1) + count(update, always));
}

bool Plan::splits_shards() const {
  return cuts() > 0 || !schedule.empty() || std::ranges::count_if(micro, [](const Stage& s) {
                                              return s.who == Stage::Who::shards ||
                                                     s.who == Stage::Who::first;
                                            }) > 1;
}

std::string Plan::str() const {
  std::string out;
  const std::pair<std::string_view, const std::vector<Stage>*> parts[] = {
      {"once a step", &prologue}, {"each micro-batch", &micro}, {"update", &update}};
  for (const auto& [name, stages] : parts) {
    if (stages->empty()) continue;
    out += fmt::format("{}:\n", name);
    for (const Stage& s : *stages) {
      std::vector<std::string> actions;
      for (Action a : s.actions) {
        actions.emplace_back(kActionNames[static_cast<size_t>(a)]);
        if (const int n = cuts(a); n > 0)
          actions.back() += fmt::format(" ({} over shards)", counted(n, "sum"));
      }
      if (!actions.empty())
        out += fmt::format("  {:<12} {}\n", kWhoNames[static_cast<size_t>(s.who)],
                           fmt::join(actions, ", "));
      if (s.who == Stage::Who::pipeline)
        for (size_t d = 0; d < schedule.size(); ++d)
          out += fmt::format("    device {:<5} {}\n", d, ops_of(schedule[d]));
      if (s.meet != Stage::Meet::never)
        out += fmt::format("  all          meet{}\n", s.meet == Stage::Meet::between
                                                          ? ", where another micro-batch follows"
                                                          : "");
    }
  }
  return out;
}

Plan basic_plan(const PlanQuery& query) {
  using Who = Stage::Who;
  Plan plan;
  plan.forward_cuts = query.forward_cuts;
  plan.backward_cuts = query.backward_cuts;
  plan.cuts_sum_all = query.cuts_sum_all;
  plan.accumulates = query.accumulates;
  if (query.divisor_from_targets) {
    plan.prologue.push_back({Who::shards, {Action::feed_targets, Action::prologue}});
    plan.prologue.push_back({Who::workers, {Action::sum_divisor}});
  }
  if (query.torch_masks) plan.micro.push_back({Who::first, {Action::draw_masks}});
  plan.micro.push_back(
      {Who::shards, {Action::feed, Action::forward, Action::loss, Action::backward}});
  if (query.compresses) plan.update.push_back({Who::shards, {Action::compress}});
  plan.update.push_back({Who::workers, {Action::sum_loss}});
  if (query.clip_norm) {
    plan.update.back().actions.push_back(Action::sum_squares);
    plan.update.push_back({Who::workers, {}});
  }
  plan.update.back().actions.push_back(Action::update);
  return plan;
}

void run_in_stages(Plan& plan, PipelineSchedule schedule) {
  for (Stage& s : plan.micro) {
    if (s.who == Stage::Who::shards) s.who = Stage::Who::pipeline;
    // One schedule covers all micro-batches
    if (s.meet == Stage::Meet::between) s.meet = Stage::Meet::never;
  }
  plan.schedule = std::move(schedule);
}

}  // namespace dpt
