#include "engine/cpu/step_costs.h"

#include <algorithm>
#include <barrier>
#include <map>
#include <numeric>
#include <optional>

#include "base/median.h"
#include "comm/shared_memory.h"
#include "comm/team.h"
#include "comm/workers.h"
#include "engine/clock.h"
#include "engine/cpu/batch_input.h"
#include "engine/cpu/binding_table.h"
#include "engine/cpu/gradient_meter.h"
#include "engine/cpu/gradient_norm.h"
#include "engine/cpu/shard_gradients.h"
#include "engine/cpu/shard_losses.h"
#include "engine/cpu/update.h"
#include "engine/cpu/worker.h"
#include "graph/operator.h"

namespace dpt {
namespace {

constexpr double kMeasureSeconds = 0.5;  // per group of workers
constexpr int kWarmup = 3, kFewest = 5, kMost = 2000;
constexpr int kBarriers = 4000;

// What a step of one worker took.
struct WorkerStep {
  double load = 0, loss = 0;
  double compress = 0, sum_own = 0, sum_parts = 0, norm = 0, update = 0;
  std::vector<double> forward, backward;  // [stages]

  explicit WorkerStep(int stages) : forward(static_cast<size_t>(stages)), backward(forward) {}
  double before_update() const {
    return load + loss + std::accumulate(forward.begin(), forward.end(), 0.0) +
           std::accumulate(backward.begin(), backward.end(), 0.0);
  }
};

// The pieces of one worker's step, each called alone. Thread: the worker's.
class StepPieces {
 public:
  StepPieces(const Session& session, const Buffers& buffers, Team team, int number)
      : session_(session),
        worker_(session, buffers, team, number),
        bindings_(worker_),
        input_(worker_, *session.data.loader, nullptr),
        losses_(worker_, bindings_, input_),
        gradients_(worker_),
        meter_(worker_),
        norm_(worker_, gradients_, meter_),
        update_(worker_, bindings_, gradients_) {
    session.batches.train->step(0, rows_);
    order_.resize(static_cast<size_t>(session.data.train_samples()));
    if (session.data.train_rows.empty())
      std::iota(order_.begin(), order_.end(), 0U);
    else
      order_ = session.data.train_rows;
    // A learning rate of 0 keeps the weights finite, however many steps are measured.
    for (const ParameterGroup& group : session.parameter_groups.groups)
      formulas_.push_back(session.settings.optimizer->step(group.settings, 1, 0, {}));
    step_ = {.rows = &rows_, .order = order_, .update = formulas_};
    sums_before_update_ =
        std::ranges::count(session.plan.update, Quantity::squares, &PlanStep::quantity) > 0;
    compresses_ = std::ranges::count(session.plan.update, PlanOp::compress, &PlanStep::op) +
                      std::ranges::count(session.plan.micro, PlanOp::compress, &PlanStep::op) >
                  0;
    if (session.shares.hosts) buckets_ = static_cast<int>(session.shares.hosts->owners().buckets());
  }

  // gate(): waits for the other workers, as a barrier of the plan does.
  template <class Gate>
  WorkerStep run(Gate gate) {
    WorkerStep out(session_.model.graph.stages());
    losses_.begin_step(rows_.samples);
    gradients_.begin_step();
    norm_.begin_step();
    gate();
    last_ = now_s();
    for (size_t m = 0; m < rows_.micro.size(); ++m) micro_batch(m, out);
    gate();
    last_ = now_s();
    if (compresses_)
      for (const int g : worker_.own) gradients_.compress(g);
    add(out.compress);
    if (buckets_ > 0) sum_for_hosts(out, gate);
    if (sums_before_update_) norm_.sum(step_);
    add(out.norm);
    gate();
    last_ = now_s();
    if (buckets_ == 0) update_.run(step_, 1);
    for (int b = 0; b < buckets_; ++b) update_.run(step_, 1, b);
    add(out.update);
    return out;
  }

  // Adds the time of each kernel of a step, by part and node.
  using Kernels = std::map<std::pair<Part, size_t>, KernelCost>;
  void time_kernels(Kernels& kernels) {
    for (size_t m = 0; m < rows_.micro.size(); ++m)
      for (const Part part : {Part::prologue, Part::forward, Part::loss, Part::backward})
        for (const int g : worker_.own) time_kernels(g, m, part, kernels);
  }

 private:
  void add(double& seconds) {
    const double now = now_s();
    seconds += now - last_;
    last_ = now;
  }

  void micro_batch(size_t m, WorkerStep& out) {
    const bool prologue = session_.model.divisor == Divisor::targets;
    for (const int g : worker_.own) {
      if (prologue) losses_.prologue(g, m, step_);
      add(out.loss);
      if (Binding* b = binding(g, m)) input_.load(*b, g, step_, m);
      add(out.load);
    }
    for (const int stage : worker_.stages.own()) {
      run_stage(Part::forward, stage, m);
      add(out.forward[static_cast<size_t>(stage)]);
    }
    for (const int g : worker_.own_loss) losses_.run(g, m, step_);
    add(out.loss);
    const std::vector<int> stages = worker_.stages.own();
    for (size_t i = stages.size(); i-- > 0;) {
      run_stage(Part::backward, stages[i], m);
      add(out.backward[static_cast<size_t>(stages[i])]);
    }
  }

  // What arrives from other hosts is zero.
  template <class Gate>
  void sum_for_hosts(WorkerStep& out, Gate gate) {
    for (int b = 0; b < buckets_; ++b) gradients_.sum_own(static_cast<size_t>(b));
    add(out.sum_own);
    gate();
    last_ = now_s();
    for (int b = 0; b < buckets_ && sums_before_update_; ++b)
      gradients_.sum_parts(static_cast<size_t>(b));
    add(out.sum_parts);
  }

  Binding* binding(int group, size_t m) const {
    return bindings_.find(group, rows_.micro[m], program_kind(session_, m), m);
  }

  // Without the sums at sync points: other workers' shards may not be computed here.
  void run_stage(Part part, int stage, size_t m) {
    for (const int g : worker_.own)
      if (Binding* b = binding(g, m))
        for (int piece = 0; piece <= b->sync_points(part, stage); ++piece)
          b->run({.part = part, .stage = stage, .piece = piece});
  }

  void time_kernels(int group, size_t m, Part part, Kernels& kernels) {
    Binding* const b = binding(group, m);
    if (!b || (part == Part::loss && std::ranges::count(worker_.own_loss, group) == 0)) return;
    const Program& program = b->program();
    for (const int stage : worker_.stages.own())
      b->run_each(part, stage, [&](size_t instruction, auto&& run) {
        const Instruction& i = program.part(part)[instruction];
        const GraphNode& node = program.graph.nodes[i.node];
        KernelCost& cost = kernels[{part, i.node}];
        const double begin = now_s();
        run();
        cost.seconds += now_s() - begin;
        cost.flops += program.graph.flops(node);
        cost.layer = node.layer;
        cost.op = node.op->name;
        cost.kernel = i.kernel->name;
        cost.part = part;
      });
  }

  const Session& session_;
  CpuWorker worker_;
  BindingTable bindings_;
  CpuBatchInput input_;
  ShardLosses losses_;
  ShardGradients gradients_;
  GradientMeter meter_;
  GradientNorm norm_;
  CpuUpdate update_;
  StepRows rows_;
  std::vector<uint32_t> order_;
  std::vector<OptimizerStep> formulas_;
  StepInput step_;
  bool sums_before_update_ = false, compresses_ = false;
  int buckets_ = 0;  // of the exchange between hosts; 0: one host
  double last_ = 0;
};

// What all repetitions of a group of workers took: [repetition][worker].
using Repetitions = std::vector<std::vector<WorkerStep>>;

template <class F>
double slowest(const Repetitions& all, F seconds_of) {
  std::vector<double> values;
  for (const auto& workers : all) {
    double most = 0;
    for (const WorkerStep& w : workers) most = std::max(most, seconds_of(w));
    values.push_back(most);
  }
  return median(values);
}

void raise(double& to, double value) { to = std::max(to, value); }

void add_to(StepCosts& costs, const Repetitions& all) {
  const auto take = [&](double StepCosts::*to, double WorkerStep::*from) {
    raise(costs.*to, slowest(all, [from](const WorkerStep& w) { return w.*from; }));
  };
  take(&StepCosts::load, &WorkerStep::load);
  take(&StepCosts::loss, &WorkerStep::loss);
  take(&StepCosts::compress, &WorkerStep::compress);
  take(&StepCosts::sum_own, &WorkerStep::sum_own);
  take(&StepCosts::sum_parts, &WorkerStep::sum_parts);
  take(&StepCosts::norm, &WorkerStep::norm);
  take(&StepCosts::update, &WorkerStep::update);
  raise(costs.whole, slowest(all, [](const WorkerStep& w) { return w.before_update(); }));
  for (size_t s = 0; s < costs.forward.size(); ++s) {
    raise(costs.forward[s], slowest(all, [s](const WorkerStep& w) { return w.forward[s]; }));
    raise(costs.backward[s], slowest(all, [s](const WorkerStep& w) { return w.backward[s]; }));
  }
}

// Measures workers [first, first + count) at the same time.
class Measurement {
 public:
  Measurement(const Session& session, const Buffers& buffers, Team team, int first, int count)
      : session_(session),
        buffers_(buffers),
        team_(team),
        first_(first),
        count_(static_cast<size_t>(count)),
        gate_(count) {}

  void run(std::span<const int> cores) {
    run_workers(
        team_, 0, [&](int thread) { measure(thread); }, cores);
  }
  const Repetitions& repetitions() const { return all_; }
  double barrier_seconds() const { return barrier_s_; }
  // The first worker's kernels; times are per step.
  std::vector<KernelCost> kernels() const {
    std::vector<KernelCost> out;
    for (const auto& [where, cost] : kernels_) out.push_back(cost);
    for (KernelCost& cost : out) cost.seconds /= timed_, cost.flops /= timed_;
    std::ranges::sort(out, std::ranges::greater(), &KernelCost::seconds);
    return out;
  }

 private:
  void measure(int thread) {
    StepPieces pieces(session_, buffers_, team_, first_ + thread);
    const auto gate = [this] { gate_.arrive_and_wait(); };
    double end = 0;
    for (int i = 0;; ++i) {
      const WorkerStep step = pieces.run(gate);
      gate();
      if (thread == 0) {
        const double now = now_s();
        if (i == kWarmup) end = now + kMeasureSeconds;
        const int measured = i - kWarmup + 1;
        more_ = measured < kFewest || (measured < kMost && now < end);
        if (measured > 0) all_.emplace_back(count_, WorkerStep(session_.model.graph.stages()));
      }
      gate();
      if (i >= kWarmup) all_.back()[static_cast<size_t>(thread)] = step;
      if (!more_) break;
    }
    if (thread == 0)
      for (; timed_ < kFewest; ++timed_) pieces.time_kernels(kernels_);
    gate();
    if (count_ > 1) time_barriers(thread);
  }

  void time_barriers(int thread) {
    const double begin = now_s();
    for (int i = 0; i < kBarriers; ++i) team_.barrier(thread);
    if (thread == 0) barrier_s_ = (now_s() - begin) / kBarriers;
  }

  const Session& session_;
  const Buffers& buffers_;
  Team team_;
  int first_;
  size_t count_;
  std::barrier<> gate_;
  bool more_ = true;
  Repetitions all_;
  StepPieces::Kernels kernels_;
  int timed_ = 0;
  double barrier_s_ = 0;
};

}  // namespace

StepCosts measure_step_costs(const Session& s, const Buffers& buffers, std::span<const int> cores) {
  const auto stages = static_cast<size_t>(s.model.graph.stages());
  StepCosts out{.forward = std::vector<double>(stages), .backward = std::vector<double>(stages)};
  // Replicas are alike, and the first one has the largest shards.
  const Rows own_workers = s.devices.topology.workers_of_host(s.devices.topology.host);
  const int workers =
      s.devices.topology.devices_per_replica > 1
          ? s.devices.topology.devices_per_replica * s.devices.topology.workers_per_device
          : static_cast<int>(own_workers.count());
  out.at_once = std::min(workers, static_cast<int>(cores.size()));
  const int measured = s.devices.topology.devices_per_replica > 1 ? workers : out.at_once;
  for (int first = 0; first < measured; first += out.at_once) {
    const int count = std::min(out.at_once, measured - first);
    const TeamShape shape{.ranks = 1, .workers_per_rank = count};
    const SharedMemory header = SharedMemory::create_private(Team::bytes(shape));
    Measurement m(s, buffers, Team::create(header.span(), shape, {}),
                  static_cast<int>(own_workers.begin) + first, count);
    m.run(cores.first(static_cast<size_t>(count)));
    add_to(out, m.repetitions());
    if (first > 0) continue;
    out.barrier = m.barrier_seconds();
    out.kernels = m.kernels();
  }
  return out;
}

}  // namespace dpt
