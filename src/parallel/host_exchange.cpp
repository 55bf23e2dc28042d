#include "parallel/host_exchange.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace dpt {
namespace {

using Actor = PlanStep::Actor;

PlanStep barrier() { return {.op = PlanOp::barrier, .actor = Actor::workers}; }

PlanStep of_leader(PlanOp op, Quantity what, int bucket = -1) {
  return {.op = op, .actor = Actor::leaders, .quantity = what, .bucket = bucket};
}

PlanStep of_workers(PlanOp op, Quantity what, int bucket) {
  return {.op = op, .actor = Actor::workers, .quantity = what, .bucket = bucket};
}

// Alternates what workers compute with what leaders exchange, a barrier between each two of them.
class Rounds {
 public:
  void add(const PlanStep& step) {
    if (!steps_.empty() && steps_.back().actor != step.actor) steps_.push_back(barrier());
    steps_.push_back(step);
  }
  Plan::Steps take() { return std::move(steps_); }

 private:
  Plan::Steps steps_;
};

// The steps that exchange gradients and, without `decides`, update and exchange weights.
//
// In round b, workers sum their shards in bucket b and complete bucket b - 2, whose parts the
// leader has waited for in round b - 1, when it began to exchange those of bucket b - 1.
class Exchange {
 public:
  Exchange(const Plan::Steps& update, int buckets) : buckets_(buckets) {
    const auto has = [&](Quantity what) {
      return std::ranges::find(update, what, &PlanStep::quantity) != update.end();
    };
    norms_ = has(Quantity::squares);
    for (const PlanStep& s : update)
      if (s.op == PlanOp::sum && s.quantity == Quantity::loss)
        loss_ = s;
      else if (s.op == PlanOp::sum)
        squares_ = s;
      else if (s.op == PlanOp::decide)
        decide_ = s;
      else if (s.op != PlanOp::update)
        before_.push_back(s);
  }

  Plan::Steps steps() && {
    for (int round = 0; round < buckets_ + 2; ++round) {
      if (round < buckets_) out_.add(of_workers(PlanOp::sum, Quantity::gradients, round));
      // The results of all shards have arrived in round 0, before any update.
      if (round == (buckets_ > 1 ? 1 : 2)) sum_results();
      if (round >= 2) complete(round - 2);
      exchange(round);
    }
    if (norms_) update_by_norm();
    out_.add(of_leader(PlanOp::wait, Quantity::weights));
    Plan::Steps all = std::move(before_);
    all.push_back(barrier());
    std::ranges::move(out_.take(), std::back_inserter(all));
    all.push_back(barrier());
    return all;
  }

 private:
  void sum_results() {
    out_.add(loss_);
    if (!norms_) out_.add(decide_);
  }

  void complete(int bucket) {
    // Without a norm, workers complete sums in the pass that updates.
    out_.add(norms_ ? of_workers(PlanOp::sum, Quantity::parts, bucket)
                    : of_workers(PlanOp::update, Quantity::parts, bucket));
  }

  void exchange(int round) {
    const auto leader = [&](PlanOp op, Quantity what, int bucket = -1) {
      out_.add(of_leader(op, what, bucket));
    };
    if (round == 0) leader(PlanOp::all_gather, Quantity::results);
    if (round >= 2 && !norms_) leader(PlanOp::all_gather, Quantity::weights, round - 2);
    if (round < buckets_) leader(PlanOp::reduce_scatter, Quantity::gradients, round);
    if (round == 0) leader(PlanOp::wait, Quantity::results);
    if (round >= 1 && round <= buckets_) leader(PlanOp::wait, Quantity::gradients, round - 1);
  }

  // The norm needs the sums of all buckets, of all hosts.
  void update_by_norm() {
    out_.add(squares_);
    out_.add(of_leader(PlanOp::all_gather, Quantity::squares));
    out_.add(of_leader(PlanOp::wait, Quantity::squares));
    out_.add(decide_);
    for (int b = 0; b < buckets_; ++b) out_.add(of_workers(PlanOp::update, Quantity::none, b));
    for (int b = 0; b < buckets_; ++b)
      out_.add(of_leader(PlanOp::all_gather, Quantity::weights, b));
  }

  int buckets_;
  bool norms_ = false;
  PlanStep loss_, squares_, decide_;
  Plan::Steps before_;  // what each shard's owner does
  Rounds out_;
};

}  // namespace

Plan exchange_between_hosts(Plan plan, size_t buckets) {
  const auto divisor = std::ranges::find(plan.prologue, PlanOp::sum, &PlanStep::op);
  if (divisor != plan.prologue.end()) {
    const Plan::Steps exchange = {of_leader(PlanOp::all_gather, Quantity::results),
                                  of_leader(PlanOp::wait, Quantity::results), barrier()};
    plan.prologue.insert(divisor, exchange.begin(), exchange.end());
  }
  plan.update = Exchange(plan.update, static_cast<int>(buckets)).steps();
  return plan;
}

}  // namespace dpt
