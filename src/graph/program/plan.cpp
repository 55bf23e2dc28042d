#include "graph/program/plan.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "base/count.h"

namespace dpt {
namespace {

using Actor = PlanStep::Actor;
using When = PlanStep::When;

std::string_view name_of(Part part) {
  switch (part) {
    case Part::prologue:
      return "prologue";
    case Part::forward:
      return "forward";
    case Part::loss:
      return "loss";
    case Part::backward:
      return "backward";
    case Part::update:
      break;
  }
  return "update";
}

std::string_view name_of(PlanOp op) {
  constexpr std::string_view kNames[] = {
      "load",           "load_targets", "draw_masks",   "run",     "add_gradients", "round",
      "compress",       "gather",       "scatter",      "barrier", "record",        "wait",
      "send",           "receive",      "send_receive", "copy",    "copy",          "all_reduce",
      "reduce_scatter", "all_gather",   "broadcast",    "sum",     "decide",        "update"};
  return kNames[static_cast<size_t>(op)];
}

std::string_view name_of(Quantity q) {
  constexpr std::string_view kNames[] = {"",        "divisor", "loss",     "squares", "gradients",
                                         "weights", "outputs", "decision", "results", "parts"};
  return kNames[static_cast<size_t>(q)];
}

// "F0", or "2F0" if the device has several stages.
std::string text_of(const StageOp& op, bool several) {
  return fmt::format("{}{}{}", several ? std::to_string(op.stage) : "", op.backward ? 'B' : 'F',
                     op.chunk);
}

std::string_view label_of(const PlanStep& s) {
  constexpr std::string_view kLabels[] = {"each shard",   "loss device", "each worker",
                                          "first worker", "each GPU",    "NCCL",
                                          "each host",    "each leader"};
  constexpr std::string_view kScopes[] = {"all", "peers", "each rank"};
  if (s.op == PlanOp::barrier) return kScopes[static_cast<size_t>(s.scope)];
  return kLabels[static_cast<size_t>(s.actor)];
}

std::string condition_of(const Plan& plan, const PlanStep& s) {
  if (s.when == When::averaged)
    return plan.average_every == 1 ? "" : fmt::format(" (every {} steps)", plan.average_every);
  constexpr std::string_view kConditions[] = {"", ", if another micro-batch follows",
                                              " (last micro-batch)", " (later micro-batches)",
                                              " (recorded steps)"};
  return std::string(kConditions[static_cast<size_t>(s.when)]);
}

// A step in the list of a device of a pipeline.
std::string staged_text(const PlanStep& s, bool several) {
  switch (s.op) {
    case PlanOp::run:
      return s.part == Part::loss ? fmt::format("loss {}", s.chunk)
                                  : text_of(s.stage_op(), several);
    case PlanOp::load:
      return fmt::format("load {}", s.chunk);
    case PlanOp::wait:
      if (s.chunk >= 0 && s.device < 0) return fmt::format("wait for transfers of {}", s.chunk);
      if (s.device < 0) break;
      return fmt::format("wait for {} of device {}", text_of(s.stage_op(), several), s.device);
    case PlanOp::send:
      return fmt::format("send to {} of device {}", text_of(s.stage_op(), several), s.device);
    case PlanOp::send_receive:
      return fmt::format("exchange with {} of device {}", text_of(s.stage_op(), several), s.device);
    case PlanOp::receive:
      return fmt::format("receive from {} of device {}", text_of(s.stage_op(), several), s.device);
    default:
      break;
  }
  return name_of(s);
}

constexpr size_t kColumns = 98;

// Items separated by commas, in lines of at most kColumns after `label`.
std::string wrapped(std::string_view label, const std::vector<std::string>& items) {
  std::string out = fmt::format("  {:<12} ", label);
  size_t column = out.size();
  for (size_t i = 0; i < items.size(); ++i) {
    const size_t length = items[i].size() + (i + 1 < items.size() ? 1 : 0);
    if (column + length > kColumns && i > 0) {
      out.back() = '\n';
      out += fmt::format("  {:<12} ", "");
      column = 15;
    }
    out += items[i] + (i + 1 < items.size() ? ", " : "");
    column += length + 1;
  }
  return out + "\n";
}

}  // namespace

std::string name_of(const PlanStep& s) {
  switch (s.op) {
    case PlanOp::run:
      return s.until < 0 ? std::string(name_of(s.part))
                         : fmt::format("{} to bucket {}", name_of(s.part), s.until);
    case PlanOp::sum:
      return fmt::format("sum_{}{}", name_of(s.quantity),
                         s.bucket < 0 ? "" : fmt::format(" of bucket {}", s.bucket));
    case PlanOp::copy_to_host:
      return fmt::format("copy {} to the host", name_of(s.quantity));
    case PlanOp::copy_from_host:
      return fmt::format("copy {} from the host", name_of(s.quantity));
    case PlanOp::add_gradients:
      return s.bucket < 0 ? "add_gradients" : fmt::format("add bucket {}", s.bucket);
    case PlanOp::round_gradients:
      return "round gradients";
    case PlanOp::gather:
    case PlanOp::scatter:
      if (s.quantity == Quantity::outputs) return std::string(name_of(s.op));
      break;
    case PlanOp::wait:
      if (s.actor == Actor::hosts) return "wait for its GPU";
      if (s.actor == Actor::gpus && s.chunk < 0) return "wait for the exchange";
      if (s.actor == Actor::leaders)
        return s.bucket < 0 ? fmt::format("wait for {}", name_of(s.quantity))
                            : fmt::format("wait for bucket {}", s.bucket);
      break;
    case PlanOp::record:
      if (s.actor == Actor::gpus && s.chunk < 0) return "record for the exchange";
      break;
    default:
      break;
  }
  if (s.bucket >= 0) return fmt::format("{} bucket {}", name_of(s.op), s.bucket);
  const std::string_view what = name_of(s.quantity);
  return fmt::format("{}{}{}", name_of(s.op), what.empty() ? "" : " ", what);
}

int Plan::sync_points(Part part) const {
  if (part == Part::forward) return forward_sync_points;
  return part == Part::backward ? backward_sync_points : 0;
}

int Plan::sync_points(const PlanStep& s) const {
  return s.op == PlanOp::run && s.until <= 0 ? sync_points(s.part) : 0;
}

int Plan::barriers(int64_t micro_batches) const {
  const auto count = [](const Steps& steps, When when) {
    return std::ranges::count_if(
        steps, [&](const PlanStep& s) { return s.op == PlanOp::barrier && s.when == when; });
  };
  int64_t out = 0;
  for (const Steps* steps : {&begin, &prologue, &update}) out += count(*steps, When::always);
  out += count(micro, When::always) * micro_batches;
  out += count(micro, When::between) * (micro_batches - 1) + count(micro, When::last);
  return static_cast<int>(out);
}

bool Plan::splits_shards() const {
  int runs = 0;
  // A divided backward part goes on with the last shard group of a worker, whose activations no
  // other group has overwritten.
  bool goes_on = false;
  each_run(micro, [&](std::span<const PlanStep> run) {
    const bool owners = run[0].actor == Actor::shards || run[0].actor == Actor::first;
    runs += owners && !goes_on ? 1 : 0;
    goes_on = goes_on || std::ranges::any_of(run, [](const PlanStep& s) { return s.until >= 0; });
  });
  return sync_points() > 0 || !schedule.empty() || runs > 1;
}

namespace {

// What a plan step of the update does on CPUs, where each worker sums its range of the gradients in
// the pass that updates it.
std::string text_in(const Plan& plan, const PlanStep& s) {
  std::string out = name_of(s);
  if (s.op == PlanOp::update && s.actor == Actor::workers && s.bucket < 0)
    out = "sum_shards, update";
  if (s.op == PlanOp::update && s.quantity == Quantity::parts)
    out = fmt::format("sum_parts, update bucket {}", s.bucket);
  if (s.device >= 0)
    out += fmt::format(" {} device {}",
                       s.op == PlanOp::gather      ? "to"
                       : s.op == PlanOp::broadcast ? "from"
                                                   : "on",
                       s.device);
  if (const int n = plan.sync_points(s); n > 0)
    out += fmt::format(" ({} over shards)", counted(n, "sum"));
  return out + condition_of(plan, s);
}

std::string section(const Plan& plan, std::string_view title, const Plan::Steps& steps) {
  if (steps.empty()) return "";
  std::string out = fmt::format("{}:\n", title);
  each_run(steps, [&](std::span<const PlanStep> run) {
    std::vector<std::string> items;
    for (const PlanStep& s : run) items.push_back(text_in(plan, s));
    out += wrapped(label_of(run[0]), items);
  });
  return out;
}

}  // namespace

std::string Plan::str() const {
  std::string out = section(*this, "before each step", begin);
  out += section(*this, "before each launch", launch);
  out += section(*this, "once a step", prologue);
  out += section(*this, "each micro-batch", micro);
  if (!stages.empty()) out += "all micro-batches:\n";
  for (size_t d = 0; d < stages.size(); ++d) {
    const auto other = [&](const StageOp& op) { return op.stage != schedule[d][0].stage; };
    const bool several = std::ranges::any_of(schedule[d], other);
    std::vector<std::string> items;
    for (const PlanStep& s : stages[d]) items.push_back(staged_text(s, several));
    out += wrapped(fmt::format("device {}", d), items);
  }
  return out + section(*this, "update", update);
}

Plan basic_plan(const PlanQuery& query) {
  const Actor shards = query.gpus ? Actor::gpus : Actor::shards;
  const Actor workers = query.gpus ? Actor::gpus : Actor::workers;
  Plan plan;
  plan.forward_sync_points = query.forward_sync_points;
  plan.backward_sync_points = query.backward_sync_points;
  plan.sync_across_replicas = query.sync_across_replicas;
  plan.accumulates = query.accumulates;
  const auto run = [&](Part part) { return PlanStep{.actor = shards, .part = part}; };
  if (query.divisor_from_targets)
    plan.prologue = {{.op = PlanOp::load_targets, .actor = shards},
                     run(Part::prologue),
                     {.op = PlanOp::sum, .actor = workers, .quantity = Quantity::divisor}};
  if (query.torch_masks) plan.micro.push_back({.op = PlanOp::draw_masks, .actor = Actor::first});
  plan.micro.push_back({.op = PlanOp::load, .actor = shards});
  for (const Part part : {Part::forward, Part::loss, Part::backward})
    plan.micro.push_back(run(part));
  if (query.gpus) {
    if (query.accumulates)
      plan.micro.push_back(
          {.op = PlanOp::add_gradients, .actor = Actor::gpus, .when = When::later});
  } else {
    if (query.compresses) plan.update.push_back({.op = PlanOp::compress, .actor = Actor::shards});
    plan.update.push_back({.op = PlanOp::sum, .actor = workers, .quantity = Quantity::loss});
  }
  if (query.gpus && query.compresses)
    plan.update.push_back({.op = PlanOp::round_gradients, .actor = Actor::gpus});
  if (query.clip_norm || query.measures)
    plan.update.push_back({.op = PlanOp::sum,
                           .actor = workers,
                           .when = query.clip_norm ? When::always : When::measured,
                           .quantity = Quantity::squares});
  plan.update.push_back({.op = PlanOp::decide, .actor = workers});
  plan.update.push_back({.op = PlanOp::update, .actor = workers});
  return plan;
}

}  // namespace dpt
