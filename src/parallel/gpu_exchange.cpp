#include "parallel/gpu_exchange.h"

#include <algorithm>

namespace dpt {
namespace {

using Actor = PlanStep::Actor;
using When = PlanStep::When;
using Scope = PlanStep::Scope;
using Steps = Plan::Steps;

void append(Steps& to, const Steps& steps) { to.insert(to.end(), steps.begin(), steps.end()); }

auto find(Steps& steps, PlanOp op) { return std::ranges::find(steps, op, &PlanStep::op); }

class Exchange {
 public:
  Exchange(Plan plan, const PlanTarget& target) : plan_(std::move(plan)), target_(target) {
    last_ = plan_.accumulates && plan_.stages.empty() ? When::last : When::always;
  }

  Plan run() {
    for (const PlanTarget::Buckets& b : target_.gradients) plan_.buckets.push_back(b.buckets);
    if (target_.topology.total_workers() > 1)
      (target_.topology.hosts() > 1 ? plan_.launch : plan_.begin) = {
          {.op = PlanOp::barrier, .actor = Actor::hosts}};
    const bool several = target_.topology.replicas() > 1;
    if (several) {
      // Nothing is rounded by itself where gradients are exchanged in 16 bits.
      std::erase_if(plan_.update,
                    [](const PlanStep& s) { return s.op == PlanOp::round_gradients; });
      sum_divisor();
      target_.by_host ? sum_on_hosts() : sum_by_nccl();
    }
    if (!target_.schedule.empty()) decide_on_last_stage();
    if (several && target_.shards_states) share_pieces();
    return std::move(plan_);
  }

 private:
  // A call of NCCL on data that the GPU has made: {record, call}; waits: the GPU continues when it
  // is done.
  Steps call(const PlanStep& what, bool waits) const {
    Steps out = {
        {.op = PlanOp::record, .actor = Actor::gpus, .when = what.when, .device = what.device},
        what};
    out[1].actor = Actor::exchange;
    if (waits)
      out.push_back(
          {.op = PlanOp::wait, .actor = Actor::gpus, .when = what.when, .device = what.device});
    return out;
  }
  // A sum by the hosts: every GPU's numbers in memory that they share, then each sums its part.
  Steps sum_by_hosts(Quantity what, int device = -1) const {
    const PlanStep meet{
        .op = PlanOp::barrier, .actor = Actor::hosts, .scope = Scope::peers, .device = device};
    Steps out = {
        {.op = PlanOp::copy_to_host, .actor = Actor::gpus, .quantity = what, .device = device},
        meet,
        {.op = PlanOp::sum, .actor = Actor::hosts, .quantity = what, .device = device}};
    if (what == Quantity::gradients) out.push_back(meet);
    out.push_back(
        {.op = PlanOp::copy_from_host, .actor = Actor::gpus, .quantity = what, .device = device});
    // No host may write its next gradients before all have read the sums.
    if (what == Quantity::gradients) out.push_back(meet);
    return out;
  }

  void sum_divisor() {
    const auto sum = find(plan_.prologue, PlanOp::sum);
    if (sum == plan_.prologue.end()) return;
    const Steps exchange =
        target_.by_host
            ? sum_by_hosts(Quantity::divisor, sum->device)
            : call({.op = PlanOp::all_reduce, .quantity = Quantity::divisor, .device = sum->device},
                   true);
    plan_.prologue.insert(sum, exchange.begin(), exchange.end());
  }

  // The device of a replica that has the losses, if not all have: -1.
  int loss_device() const { return target_.schedule.empty() ? -1 : target_.stage_device.back(); }

  void sum_on_hosts() {
    Steps out = sum_by_hosts(Quantity::gradients);
    append(out, sum_by_hosts(Quantity::loss, loss_device()));
    plan_.update.insert(plan_.update.begin(), out.begin(), out.end());
  }

  PlanStep sum_of_bucket(int bucket) const {
    return {.op = target_.shards_states ? PlanOp::reduce_scatter : PlanOp::all_reduce,
            .when = last_,
            .quantity = Quantity::gradients,
            .bucket = bucket};
  }
  // One call for each bucket that is complete with `bucket` and not before; advances it.
  Steps sums_of_buckets(const PlanTarget::Buckets& g, size_t& bucket) const {
    const size_t made = g.made_after[bucket];
    Steps out;
    for (; bucket < g.buckets.size() && g.made_after[bucket] <= made; ++bucket) {
      Steps sum = call(sum_of_bucket(static_cast<int>(bucket)), false);
      if (!out.empty()) sum.erase(sum.begin());  // the same record serves all
      append(out, sum);
    }
    return out;
  }

  void sum_by_nccl() {
    plan_.stages.empty() ? sum_while_backward() : sum_while_in_stages();
    plan_.update.insert(plan_.update.begin(), {.op = PlanOp::wait, .actor = Actor::gpus});
  }

  void sum_while_backward() {
    const auto is_backward = [](const PlanStep& s) {
      return s.op == PlanOp::run && s.part == Part::backward;
    };
    const auto backward = std::ranges::find_if(plan_.micro, is_backward);
    const PlanStep run = *backward;
    Steps out;
    // Losses are summed beside the backward part. Where one GPU computes them, the copies that
    // follow are calls, too, so the sum goes behind those.
    append(out, call({.op = PlanOp::all_reduce, .when = last_, .quantity = Quantity::loss}, false));
    const PlanTarget::Buckets& g = target_.gradients[0];
    for (size_t b = 0; b < g.buckets.size();) {
      const size_t first = b;
      const Steps sums = sums_of_buckets(g, b);
      out.push_back(run);
      if (b < g.buckets.size()) out.back().until = static_cast<int>(b) - 1;
      for (size_t i = first; i < b && plan_.accumulates; ++i)
        out.push_back({.op = PlanOp::add_gradients,
                       .actor = Actor::gpus,
                       .when = When::later,
                       .bucket = static_cast<int>(i)});
      append(out, sums);
    }
    std::erase_if(plan_.micro, [](const PlanStep& s) { return s.op == PlanOp::add_gradients; });
    const auto at = plan_.micro.erase(std::ranges::find_if(plan_.micro, is_backward));
    plan_.micro.insert(at, out.begin(), out.end());
  }

  void sum_while_in_stages() {
    for (size_t d = 0; d < plan_.stages.size(); ++d) {
      const PlanTarget::Buckets& g = target_.gradients[d];
      const std::vector<StageOp>& ops = target_.schedule[d];
      Steps out;
      size_t op = 0, bucket = 0, losses = 0;
      const auto chunks = static_cast<size_t>(
          std::ranges::count_if(ops, [&](const StageOp& o) { return !o.backward && has_loss(o); }));
      for (size_t i = 0; i < plan_.stages[d].size(); ++i) {
        const PlanStep& s = plan_.stages[d][i];
        out.push_back(s);
        if (s.op == PlanOp::run && s.part == Part::loss && ++losses == chunks)
          append(out, call({.op = PlanOp::all_reduce, .quantity = Quantity::loss}, false));
        if (!ends_op(plan_.stages[d], i)) continue;
        if (bucket < g.buckets.size() && g.made_after[bucket] <= op)
          append(out, sums_of_buckets(g, bucket));
        ++op;
      }
      plan_.stages[d] = std::move(out);
    }
  }
  bool has_loss(const StageOp& op) const {
    return op.stage + 1 == static_cast<int>(target_.stage_device.size());
  }
  // Whether the next step belongs to another operation of the device, or there is none.
  static bool ends_op(const Steps& steps, size_t i) {
    const auto own = [](const PlanStep& s) {
      return s.op == PlanOp::load || s.op == PlanOp::run || s.op == PlanOp::add_gradients ||
             s.op == PlanOp::record;
    };
    if (!own(steps[i])) return false;
    if (i + 1 == steps.size() || !own(steps[i + 1])) return true;
    const PlanStep &a = steps[i], &b = steps[i + 1];
    const bool backward = a.part == Part::backward;
    return a.stage != b.stage || a.chunk != b.chunk || backward != (b.part == Part::backward);
  }

  void decide_on_last_stage() {
    const int device = target_.stage_device.back();
    const auto decide = find(plan_.update, PlanOp::decide);
    decide->device = device;
    plan_.update.insert(decide + 1, {.op = PlanOp::broadcast,
                                     .actor = Actor::gpus,
                                     .quantity = Quantity::decision,
                                     .device = device});
    plan_.update.insert(find(plan_.update, PlanOp::decide), {.op = PlanOp::gather,
                                                             .actor = Actor::gpus,
                                                             .quantity = Quantity::squares,
                                                             .device = device});
  }

  // Norm partials of pieces before the decision, weights of pieces after the update.
  void share_pieces() {
    const auto squares = std::ranges::find_if(plan_.update, [](const PlanStep& s) {
      return s.op == PlanOp::sum && s.quantity == Quantity::squares;
    });
    if (squares != plan_.update.end()) {
      const PlanStep sum{
          .op = PlanOp::all_reduce, .actor = Actor::hosts, .quantity = Quantity::squares};
      const Steps all = target_.by_host ? Steps{sum} : call(sum, true);
      plan_.update.insert(squares + 1, all.begin(), all.end());
    }
    append(plan_.update,
           target_.by_host ? gather_on_hosts()
                           : call({.op = PlanOp::all_gather, .quantity = Quantity::weights}, true));
  }
  static Steps gather_on_hosts() {
    const PlanStep meet{.op = PlanOp::barrier, .actor = Actor::hosts, .scope = Scope::peers};
    return {{.op = PlanOp::copy_to_host, .actor = Actor::gpus, .quantity = Quantity::weights},
            meet,
            {.op = PlanOp::copy_from_host, .actor = Actor::gpus, .quantity = Quantity::weights},
            meet};  // no host may write its next weights before all have read these
  }

  Plan plan_;
  const PlanTarget& target_;
  When last_;
};

}  // namespace

Plan exchange_between_gpus(Plan plan, const PlanTarget& target) {
  return Exchange(std::move(plan), target).run();
}

}  // namespace dpt
