#include "parallel/host_exchange.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace dpt {
namespace {

using Actor = PlanStep::Actor;
using When = PlanStep::When;

PlanStep barrier(When when = When::always) {
  return {.op = PlanOp::barrier, .actor = Actor::workers, .when = when};
}

PlanStep of_leader(PlanOp op, Quantity what, int bucket = -1) {
  return {.op = op, .actor = Actor::leaders, .quantity = what, .bucket = bucket};
}

PlanStep of_workers(PlanOp op, Quantity what, int bucket) {
  return {.op = op, .actor = Actor::workers, .quantity = what, .bucket = bucket};
}

PlanStep at(PlanStep step, When when) {
  step.when = when;
  return step;
}

bool has(const Plan::Steps& steps, PlanOp op) {
  return std::ranges::find(steps, op, &PlanStep::op) != steps.end();
}

PlanStep compress(int bucket) {
  return {.op = PlanOp::compress, .actor = Actor::shards, .bucket = bucket};
}

// Divides the backward part where buckets are complete: workers sum them, and leaders begin to send
// them. Buckets that one instruction completes are sent together.
void send_during_backward(Plan& plan, const std::vector<size_t>& made_after) {
  const bool halves = has(plan.update, PlanOp::compress);
  const When last = plan.accumulates ? When::last : When::always;
  const auto backward = std::ranges::find_if(plan.micro, [](const PlanStep& s) {
    return s.op == PlanOp::run && s.part == Part::backward;
  });
  const PlanStep run = *backward;
  Plan::Steps out;
  for (size_t first = 0, end = 0; first < made_after.size(); first = end) {
    while (end < made_after.size() && made_after[end] == made_after[first]) ++end;
    const auto each = [&](auto step_of) {
      for (size_t b = first; b < end; ++b) out.push_back(at(step_of(static_cast<int>(b)), last));
    };
    out.push_back(run);
    out.back().until = static_cast<int>(end) - 1;
    if (halves) each(compress);
    out.push_back(barrier(last));
    each([](int b) { return of_workers(PlanOp::sum, Quantity::gradients, b); });
    out.push_back(barrier(last));
    each([](int b) { return of_leader(PlanOp::reduce_scatter, Quantity::gradients, b); });
  }
  plan.micro.insert(backward, out.begin(), out.end());
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
// In round r, workers sum their shards in bucket `sent` + r and complete bucket r - lag, whose
// parts the leader has waited for in the round before. Without buckets that were sent before, two
// rounds lie between, so that the leader does not wait for what it has only begun to exchange.
class Exchange {
 public:
  // sent: buckets that are sent during the backward part.
  Exchange(const Plan::Steps& update, int buckets, int sent)
      : buckets_(buckets), sent_(sent), lag_(sent > 0 ? 1 : 2) {
    norms_ = std::ranges::find(update, Quantity::squares, &PlanStep::quantity) != update.end();
    for (const PlanStep& s : update)
      if (s.op == PlanOp::sum && s.quantity == Quantity::loss)
        loss_ = s;
      else if (s.op == PlanOp::sum)
        squares_ = s;
      else if (s.op == PlanOp::decide)
        decide_ = s;
      else if (s.op == PlanOp::compress && sent > 0)
        for (int b = sent; b < buckets; ++b) before_.push_back(compress(b));
      else if (s.op != PlanOp::update)
        before_.push_back(s);
  }

  Plan::Steps steps() && {
    for (int round = 0; round < buckets_ + lag_; ++round) {
      const int next = sent_ + round, done = round - lag_;
      if (next < buckets_) out_.add(of_workers(PlanOp::sum, Quantity::gradients, next));
      // The results of all shards have arrived in round 0, before any update.
      if (round == (buckets_ > 1 ? 1 : 2)) sum_results();
      if (done >= 0) complete(done);
      exchange(round, next, done);
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

  void exchange(int round, int next, int done) {
    const auto leader = [&](PlanOp op, Quantity what, int bucket = -1) {
      out_.add(of_leader(op, what, bucket));
    };
    if (round == 0) leader(PlanOp::all_gather, Quantity::results);
    if (done >= 0 && !norms_) leader(PlanOp::all_gather, Quantity::weights, done);
    if (next < buckets_) leader(PlanOp::reduce_scatter, Quantity::gradients, next);
    if (round == 0) leader(PlanOp::wait, Quantity::results);
    if (done + 1 >= 0 && done + 1 < buckets_) leader(PlanOp::wait, Quantity::gradients, done + 1);
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

  int buckets_, sent_, lag_;
  bool norms_ = false;
  PlanStep loss_, squares_, decide_;
  Plan::Steps before_;  // what each shard's owner does
  Rounds out_;
};

}  // namespace

Plan exchange_between_hosts(Plan plan, size_t buckets, const std::vector<size_t>& made_after) {
  const auto divisor = std::ranges::find(plan.prologue, PlanOp::sum, &PlanStep::op);
  if (divisor != plan.prologue.end()) {
    const Plan::Steps exchange = {of_leader(PlanOp::all_gather, Quantity::results),
                                  of_leader(PlanOp::wait, Quantity::results), barrier()};
    plan.prologue.insert(divisor, exchange.begin(), exchange.end());
  }
  if (!made_after.empty()) send_during_backward(plan, made_after);
  plan.update =
      Exchange(plan.update, static_cast<int>(buckets), static_cast<int>(made_after.size())).steps();
  return plan;
}

}  // namespace dpt
