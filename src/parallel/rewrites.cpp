#include "parallel/rewrites.h"

#include <algorithm>
#include <utility>

#include "parallel/gpu_exchange.h"
#include "parallel/host_exchange.h"

namespace dpt {
namespace {

using Actor = PlanStep::Actor;
using When = PlanStep::When;

PlanStep barrier(When when = When::always, PlanStep::Scope scope = PlanStep::Scope::all) {
  return {.op = PlanOp::barrier, .actor = Actor::workers, .when = when, .scope = scope};
}

auto find(Plan::Steps& steps, PlanOp op) { return std::ranges::find(steps, op, &PlanStep::op); }

// Adds the barriers of the workers of each replica, which is a rank, and the one before the loss is
// summed over all replicas.
Plan share_within_replicas(Plan plan, const Topology& topology) {
  const bool alone = topology.workers_per_rank() == 1;
  const auto meet = [&](Plan::Steps& steps, auto before) {
    if (!alone) steps.insert(before, barrier(When::always, PlanStep::Scope::rank));
  };
  if (const auto sum = find(plan.prologue, PlanOp::sum); sum != plan.prologue.end())
    meet(plan.prologue, sum);
  // The next micro-batch overwrites the sums of a single sync point.
  if (!alone && plan.sync_points() == 1 && plan.accumulates)
    plan.micro.push_back(barrier(When::between, PlanStep::Scope::rank));
  const auto squares = std::ranges::find(plan.update, Quantity::squares, &PlanStep::quantity);
  if (squares != plan.update.end()) meet(plan.update, squares + 1);
  plan.update.insert(find(plan.update, PlanOp::sum), barrier());
  meet(plan.update, plan.update.end());
  return plan;
}

// Barriers of CPU workers before the update.
Plan wait_before_update(Plan plan, const Topology& topology) {
  if (const auto sum = find(plan.prologue, PlanOp::sum); sum != plan.prologue.end())
    plan.prologue.insert(sum, barrier());
  bool still_read =
      plan.sync_points() == 1 && topology.sync_needs_barrier(plan.sync_across_replicas);
  if (const auto masks = find(plan.micro, PlanOp::draw_masks); masks != plan.micro.end()) {
    plan.micro.insert(masks + 1, barrier());
    still_read = true;
  }
  // The next micro-batch overwrites masks drawn by the first worker, and the sums of a single sync
  // point, while other workers may still read them.
  if (still_read && plan.accumulates && plan.stages.empty())
    plan.micro.push_back(barrier(When::between));
  return plan;
}

// The update of CPU workers: a barrier before others' gradients are read, one before norm partials
// are, and one after the weights are written. If replicas own their weights, only the loss is of
// all replicas, which a barrier of all workers precedes.
Plan share_on_cpus(Plan plan, const PlanTarget& target) {
  const Topology& topology = target.topology;
  if (topology.total_workers() == 1) return plan;
  if (topology.replicas_own_weights()) return share_within_replicas(std::move(plan), topology);
  plan = wait_before_update(std::move(plan), topology);
  if (topology.hosts() > 1)
    return exchange_between_hosts(std::move(plan), target.host_buckets, target.host_made_after);
  const auto squares = std::ranges::find(plan.update, Quantity::squares, &PlanStep::quantity);
  if (squares != plan.update.end()) plan.update.insert(squares + 1, barrier(squares->when));
  plan.update.insert(find(plan.update, PlanOp::sum), barrier());
  plan.update.push_back(barrier());
  return plan;
}

}  // namespace

Plan average_weights(Plan plan, const PlanTarget& target) {
  if (!target.topology.replicas_own_weights()) return plan;
  plan.average_every = target.topology.average_every;
  plan.update.push_back(barrier(When::averaged));
  plan.update.push_back({.op = PlanOp::all_reduce,
                         .actor = Actor::workers,
                         .when = When::averaged,
                         .quantity = Quantity::weights});
  plan.update.push_back(barrier(When::averaged));
  return plan;
}

Plan share_gradients(Plan plan, const PlanTarget& target) {
  return target.gpus ? exchange_between_gpus(std::move(plan), target)
                     : share_on_cpus(std::move(plan), target);
}

Plan gather_for_loss(Plan plan, const PlanTarget& target) {
  if (target.topology.loss_device < 0) return plan;
  const Actor all = target.gpus ? Actor::gpus : Actor::shards;
  const auto is_loss = [](const PlanStep& s) {
    return s.op == PlanOp::run && s.part == Part::loss;
  };
  auto loss = std::ranges::find_if(plan.micro, is_loss);
  loss->actor = target.gpus ? Actor::gpus : Actor::loss_device;
  if (target.gpus) loss->device = target.topology.loss_device;
  const PlanStep gather{.op = PlanOp::gather, .actor = all, .quantity = Quantity::outputs};
  const PlanStep scatter{.op = PlanOp::scatter, .actor = all, .quantity = Quantity::outputs};
  // Memory is shared, or copied by each device's own thread: then all wait for each other.
  const bool waits = !target.gpus || target.by_host;
  Plan::Steps before = {gather}, after;
  if (waits) {
    PlanStep meet = barrier();
    if (target.gpus) meet.actor = Actor::hosts;
    const PlanStep host{.op = PlanOp::wait, .actor = Actor::hosts};
    if (target.gpus) before.push_back(host), after.push_back(host);
    before.push_back(meet), after.push_back(meet);
  }
  after.push_back(scatter);
  loss = plan.micro.insert(loss + 1, after.begin(), after.end()) - 1;
  plan.micro.insert(loss, before.begin(), before.end());
  return plan;
}

}  // namespace dpt
