#include "engine/cpu/executor.h"

#include <algorithm>

#include "base/fail.h"
#include "engine/cpu/nonfinite_search.h"
#include "engine/plan_steps.h"

namespace dpt {
namespace {

PlanStepClock::Kind kind_of(std::span<const PlanStep> run) {
  if (run[0].actor == PlanStep::Actor::leaders) return PlanStepClock::exchange;
  if (run[0].actor != PlanStep::Actor::workers) return PlanStepClock::compute;
  const bool updates = std::ranges::count(run, PlanOp::update, &PlanStep::op) > 0;
  return updates ? PlanStepClock::update : PlanStepClock::exchange;
}

std::vector<std::span<const PlanStep>> runs_of(const Plan::Steps& steps) {
  std::vector<std::span<const PlanStep>> out;
  each_run(steps, [&](std::span<const PlanStep> run) { out.push_back(run); });
  return out;
}

}  // namespace

Executor::Executor(const Session& session, const Buffers& buffers, Team team, int worker,
                   Generator* masks, const Samples& samples, PlanStepClock* clock, Trace* trace,
                   Link* link)
    : worker_(session, buffers, team, worker, clock, trace),
      bindings_(worker_),
      backward_(worker_),
      sync_points_(worker_, bindings_),
      input_(worker_, *session.data.loader, samples.train),
      losses_(worker_, bindings_, input_),
      gradients_(worker_),
      meter_(worker_),
      norm_(worker_, gradients_, meter_),
      update_(worker_, bindings_, gradients_),
      average_(worker_, buffers),
      posts_(worker_),
      pipeline_(worker_, bindings_, sync_points_, input_, losses_, gradients_, posts_),
      prologue_(runs_of(session.plan.prologue)),
      micro_(runs_of(session.plan.micro)),
      update_runs_(runs_of(session.plan.update)) {
  if (link) worker_.exchange = &exchange_.emplace(session, buffers, team, *link);
  if (masks) masks_.emplace(session, bindings_.arenas(), *masks);
  if (session.data.test)
    evaluation_.emplace(worker_, bindings_, sync_points_, posts_, samples.test);
}

StepResult Executor::step(const StepInput& input) {
  result_ = {};
  clip_scale_ = 1;
  worker_.clocks.begin_step(input.number);
  losses_.begin_step(losses_.samples_of_update(*input.rows));
  gradients_.begin_step();
  norm_.begin_step();
  const size_t micro = input.rows->micro.size();
  for (const StepRun run : prologue_) {
    const size_t count = run[0].actor == PlanStep::Actor::shards ? micro : 1;
    for (size_t m = 0; m < count; ++m) pass(run, m, input);
  }
  if (!worker_.session.plan.stages.empty()) pipeline_.run(input);
  for (size_t m = 0; m < micro; ++m)
    for (const StepRun run : micro_) pass(run, m, input);
  for (const StepRun run : update_runs_) pass(run, 0, input);
  worker_.clocks.end_step(input.rows->samples);
  return result_;
}

void Executor::pass(StepRun run, size_t micro, const StepInput& input) {
  if (run[0].op == PlanOp::barrier) {
    for (const PlanStep& s : run)
      if (happens(s.when, micro, input.rows->micro.size(), input.measured, input.averaged))
        worker_.barrier(s.scope);
    return;
  }
  execute(run, micro, input);
  worker_.clocks.mark(kind_of(run));
}

void Executor::execute(StepRun run, size_t micro, const StepInput& input) {
  switch (run[0].actor) {
    case PlanStep::Actor::shards:
      worker_.session.plan.sync_points() > 0 ? run_with_sync_points(run, micro, input)
                                             : run_shards(run, micro, input);
      return backward_.advance(run);
    case PlanStep::Actor::loss_device:
      for (const int g : worker_.own_loss)
        for (const PlanStep& s : run) act(s, g, micro, input);
      return;
    case PlanStep::Actor::first:
      if (masks_) masks_->draw(input.rows->micro[micro], static_cast<int>(micro));
      return;
    case PlanStep::Actor::workers:
      for (const PlanStep& s : run)
        if (result_.finite &&
            happens(s.when, micro, input.rows->micro.size(), input.measured, input.averaged))
          act(s, 0, micro, input);
      return;
    case PlanStep::Actor::leaders:
      if (happens(run[0].when, micro, input.rows->micro.size(), input.measured))
        exchange_with_hosts(run, input);
      return;
    case PlanStep::Actor::gpus:
    case PlanStep::Actor::exchange:
    case PlanStep::Actor::hosts:
      fail(Fault::failed, "a step of GPUs in a plan for CPUs");
  }
}

void Executor::exchange_with_hosts(StepRun run, const StepInput& input) {
  if (!exchange_) return;
  // An exchange that has begun must end, even if nothing is updated.
  for (const PlanStep& s : run)
    if (s.op == PlanOp::wait || (result_.finite && !result_.overflowed))
      worker_.clocks.traced(s, 0, [&] { exchange_->run(s, input.number); });
}

void Executor::run_shards(StepRun run, size_t micro, const StepInput& input) {
  for (const int g : worker_.own)
    for (const PlanStep& s : run)
      if (happens(s.when, micro, input.rows->micro.size(), input.measured)) act(s, g, micro, input);
}

void Executor::run_with_sync_points(StepRun run, size_t micro, const StepInput& input) {
  for (const PlanStep& s : run) {
    if (!happens(s.when, micro, input.rows->micro.size(), input.measured)) continue;
    const int sync_points = s.op == PlanOp::run ? worker_.session.plan.sync_points(s.part) : 0;
    if (memory_watch) memory_watch->begin(worker_.number, s);
    sync_points_.run(sync_points,
                     {.part = s.part,
                      .micro = input.rows->micro[micro],
                      .kind = program_kind(worker_.session, micro),
                      .range = s.part == Part::backward ? backward_.range(s) : Binding::Range()});
    for (const int g : worker_.own)
      if (sync_points == 0)
        act(s, g, micro, input);
      else if (s.part == Part::backward && micro == 0 && backward_.begins())
        gradients_.clear_empty(g, input.rows->micro[0]);
  }
}

void Executor::act(const PlanStep& s, int group, size_t micro, const StepInput& input) {
  worker_.clocks.traced(s, static_cast<int>(micro), [&] { do_step(s, group, micro, input); });
}

void Executor::do_step(const PlanStep& s, int group, size_t micro, const StepInput& input) {
  switch (s.op) {
    case PlanOp::load:
      return load(group, micro, input);
    case PlanOp::run:
      return run_part(s, group, micro, input);
    case PlanOp::compress:
      return gradients_.compress(group, s.bucket);
    case PlanOp::sum:
      return sum(s, input);
    case PlanOp::decide:
      return decide(input);
    case PlanOp::update:
      return update(s, input);
    case PlanOp::all_reduce:
      return average_.run();
    default:  // load_targets: done by the prologue; gather, scatter: CPUs share memory
      return;
  }
}

void Executor::load(int group, size_t micro, const StepInput& input) {
  const ProgramKind kind = program_kind(worker_.session, micro);
  if (Binding* b = bindings_.find(group, input.rows->micro[micro], kind, micro))
    input_.load(*b, group, input, micro);
}

void Executor::run_part(const PlanStep& s, int group, size_t micro, const StepInput& input) {
  if (s.part == Part::prologue) return losses_.prologue(group, micro, input);
  if (s.part == Part::loss) return losses_.run(group, micro, input);
  const ProgramKind kind = program_kind(worker_.session, micro);
  Binding* const b = bindings_.find(group, input.rows->micro[micro], kind);
  if (s.part == Part::forward) {
    if (b) b->run(Part::forward);
    return;
  }
  if (b) b->run({.part = Part::backward, .range = backward_.range(s, group)});
  if (micro == 0 && backward_.begins()) gradients_.clear_empty(group, input.rows->micro[0]);
}

void Executor::sum(const PlanStep& s, const StepInput& input) {
  if (s.quantity == Quantity::divisor) return losses_.sum_divisor(input.number);
  if (s.quantity == Quantity::gradients) return gradients_.sum_own(static_cast<size_t>(s.bucket));
  if (s.quantity == Quantity::parts) return gradients_.sum_parts(static_cast<size_t>(s.bucket));
  if (s.quantity == Quantity::squares) return norm_.sum(input);
  result_ = result_of(worker_.session, losses_.sums(input.number));
  if (!worker_.session.devices.topology.replicas_own_weights()) {
    // Between two barriers, so every worker reads the same number.
    result_.stop = worker_.team.agreed_stop();
  } else if (input.averaged) {  // a run stops only where replicas are equal
    result_.stop = worker_.team.agreed_stop(worker_.team_number);
  }
}

void Executor::update(const PlanStep& s, const StepInput& input) {
  if (result_.overflowed) return;
  const bool idle = worker_.session.devices.topology.replicas_own_weights() &&
                    losses_.samples_of_update(*input.rows) == 0;
  if (!idle) update_.run(input, clip_scale_, s.bucket);
}

void Executor::decide(const StepInput& input) {
  const GradientDecision decision = norm_.decide(input);
  result_.norm = decision.norm;
  result_.overflowed = result_.overflowed || decision.overflowed;
  clip_scale_ = decision.clip_scale;
}

NonFiniteReport Executor::find_non_finite(const StepInput& input) {
  return CpuNonFiniteSearch(worker_, bindings_, sync_points_, input_).run(input);
}

void Executor::swap_average() {
  worker_.team.barrier(worker_.team_number);
  update_.swap_average();
  worker_.team.barrier(worker_.team_number);
  worker_.among_hosts([](HostExchange& e) { e.gather_weights(); });
}

void Executor::receive_start() {
  worker_.among_hosts([](HostExchange& e) { e.send_start(); });
}

void Executor::gather() {
  worker_.among_hosts([](HostExchange& e) { e.gather_states(); });
}

}  // namespace dpt
