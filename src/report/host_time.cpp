#include "report/host_time.h"

#include <algorithm>
#include <vector>

#include "report/step_time.h"
#include "session/host_traffic.h"
#include "session/make_plan.h"

namespace dpt {
namespace {

// A host's clock while it executes a step.
class HostStep {
 public:
  HostStep(const Session& session, const StepCosts& costs, const LinkModel& link,
           SumAlgorithm algorithm)
      : s_(session),
        costs_(costs),
        link_(link),
        algorithm_(algorithm),
        traffic_(session),
        made_after_(session.shares.hosts.value().made_after()) {
    for (size_t b = 0; b < owners().buckets(); ++b) {
      elements_ += static_cast<double>(owners().bucket(b).count());
      owned_ += static_cast<double>(owned(b));
    }
  }

  HostStepTime run() {
    execute(s_.plan.prologue);
    compute();
    execute(s_.plan.update);
    return {.local = local_, .exchange = now_ - local_};
  }

 private:
  struct Exchange {
    Quantity what;
    int bucket;
    double arrives;
  };

  const ElementOwners& owners() const { return traffic_.owners(); }
  size_t owned(size_t bucket) const {
    return owners().piece(bucket, s_.devices.topology.host).count();
  }

  void execute(const Plan::Steps& steps) {
    for (const PlanStep& step : steps) {
      if (step.op == PlanOp::barrier)
        work(step.when == PlanStep::When::always ? costs_.barrier : 0);
      else if (step.actor != PlanStep::Actor::leaders)
        work(seconds_of(step));
      else if (step.op == PlanOp::wait)
        wait(step);
      else
        begin(step);
    }
  }

  void work(double seconds) {
    now_ += seconds;
    local_ += seconds;
  }

  // The micro-batches, with the prologue's kernels, and the sync points of batch norm.
  void compute() {
    const auto count = [](const Plan::Steps& steps) {
      return std::ranges::count_if(steps, [](const PlanStep& s) {
        return s.op == PlanOp::barrier && s.when == PlanStep::When::always;
      });
    };
    const auto barriers =
        static_cast<double>(barriers_of_step(s_) - count(s_.plan.prologue) - count(s_.plan.update));
    const auto micro = static_cast<double>(s_.batches.train->accumulate());
    const double divided = made_after_.empty() ? 0 : costs_.all_backward() / micro;
    work(predict_step(s_, costs_).compute + barriers * costs_.barrier - divided);
    if (!made_after_.empty()) divided_backward(divided);
    const HostTraffic sums = traffic_.most_at_sync_points();  // of a micro-batch
    if (sums.messages == 0) return;
    const double points = micro * s_.plan.sync_points();
    work(points * costs_.barrier);  // all workers wait for what leaders exchange
    Transfer all = transfer_of(sums);
    all.bytes *= micro;
    all.messages *= micro;
    all.hops = points;
    now_ += seconds(link_, all);
  }

  // The backward part of the last micro-batch, where buckets are sent while it goes on. Its
  // barriers are counted by compute().
  void divided_backward(double seconds) {
    double done = 0;
    for (const PlanStep& step : s_.plan.micro) {
      if (step.op == PlanOp::run && step.part == Part::backward) {
        const double end = step.until < 0 ? 1 : share_until(step.until);
        work((end - done) * seconds);
        done = end;
      } else if (step.actor == PlanStep::Actor::leaders) {
        begin(step);
      } else if (step.op == PlanOp::sum || step.op == PlanOp::compress) {
        work(seconds_of(step));
      }
    }
  }

  // The share of the operations of the backward part up to where this bucket is complete.
  double share_until(int bucket) const {
    const Program& program = s_.model.programs.begin()->second;
    double until = 0, all = 0;
    for (size_t i = 0; i < program.backward.size(); ++i) {
      all += program.graph.flops(program.graph.nodes[program.backward[i].node]);
      if (i == made_after_[static_cast<size_t>(bucket)]) until = all;
    }
    return all > 0 ? until / all : 1;
  }

  double seconds_of(const PlanStep& step) const {
    const auto bucket = static_cast<size_t>(std::max(0, step.bucket));
    const auto share = [&](size_t part, double whole) {
      return step.bucket < 0 || whole == 0 ? 1 : static_cast<double>(part) / whole;
    };
    const bool sums = step.op == PlanOp::sum;
    if (step.op == PlanOp::compress)
      return costs_.compress * share(owners().bucket(bucket).count(), elements_);
    if (sums && step.quantity == Quantity::gradients)
      return costs_.sum_own * share(owners().bucket(bucket).count(), elements_);
    if (sums && step.quantity == Quantity::parts)
      return costs_.sum_parts * share(owned(bucket), owned_);
    if (sums && step.quantity == Quantity::squares) return costs_.norm;
    if (step.op == PlanOp::update) return costs_.update * share(owned(bucket), owned_);
    return 0;  // counted by compute(), or a few additions
  }

  static Transfer transfer_of(const HostTraffic& t) {
    return {.bytes = static_cast<double>(std::max(t.sent, t.received)),
            .messages = static_cast<double>(t.messages),
            .hops = t.messages > 0 ? 1.0 : 0.0};
  }

  void begin(const PlanStep& step) {
    Transfer transfer = transfer_of(traffic_.most(step));
    const bool summed = step.quantity == Quantity::gradients || step.quantity == Quantity::weights;
    if (summed && algorithm_ == SumAlgorithm::ring) {
      transfer.hops = owners().hosts() - 1;
      transfer.messages = 0;
    }
    const double begins = std::max(now_, link_free_);
    link_free_ = begins + occupied_seconds(link_, transfer);
    on_their_way_.push_back({step.quantity, step.bucket, begins + seconds(link_, transfer)});
  }

  void wait(const PlanStep& step) {
    std::erase_if(on_their_way_, [&](const Exchange& e) {
      const bool meant = e.what == step.quantity && (step.bucket < 0 || e.bucket == step.bucket);
      if (meant) now_ = std::max(now_, e.arrives);
      return meant;
    });
  }

  const Session& s_;
  const StepCosts& costs_;
  const LinkModel& link_;
  const SumAlgorithm algorithm_;
  const HostTrafficCounter traffic_;
  const std::vector<size_t>& made_after_;  // HostLayout::made_after()
  double elements_ = 0, owned_ = 0;        // of all buckets; of those, this host's
  double now_ = 0, local_ = 0, link_free_ = 0;
  std::vector<Exchange> on_their_way_;
};

}  // namespace

HostStepTime predict_host_step(const Session& session, const StepCosts& costs,
                               const LinkModel& link, SumAlgorithm algorithm) {
  if (session.devices.topology.hosts() == 1) return {.local = predict_step(session, costs).total()};
  return HostStep(session, costs, link, algorithm).run();
}

}  // namespace dpt
