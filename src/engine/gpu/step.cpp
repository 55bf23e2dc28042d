#include "engine/gpu/step.h"

#include "backend/cuda/interface/launch.h"
#include "backend/cuda/kernels/update.h"
#include "engine/plan_steps.h"
#include "session/gradient_buckets.h"
#include "session/update_partition.h"

namespace dpt {
namespace {

// Steps of the prologue that every micro-batch takes.
bool each_micro_batch(const PlanStep& s) {
  return s.op == PlanOp::load_targets || s.op == PlanOp::run;
}

}  // namespace

GpuStep::GpuStep(GpuWorker& worker, const Uses& uses)
    : worker_(worker),
      uses_(uses),
      parts_(worker, uses.exchange),
      losses_(worker, uses.bindings, uses.update, uses.launch_queue, uses.exchange, uses.gather) {
  if (uses.stages || !uses.exchange || !uses.exchange->by_nccl()) return;
  for (const auto* programs : {&worker.session.model.programs, &worker.session.model.last_programs})
    for (const auto& [rows, program] : *programs)
      made_after_[&program] = made_after(program, worker.session.plan.buckets[0]);
}

void GpuStep::enqueue(const StepRows& rows, size_t step, size_t slot) {
  const Plan& plan = worker_.session.plan;
  InProgress now{.rows = rows, .step = step, .slot = slot};
  const size_t micro_batches = rows.micro.size();
  for (now.micro = 0; now.micro < micro_batches; ++now.micro)
    for (const PlanStep& s : plan.prologue)
      if (each_micro_batch(s)) execute(s, now);
  for (const PlanStep& s : plan.prologue)
    if (!each_micro_batch(s)) execute(s, now);
  for (now.micro = 0; now.micro < micro_batches; ++now.micro)
    for (const PlanStep& s : plan.micro)
      if (happens(s.when, now.micro, micro_batches, true)) execute(s, now);
  if (uses_.stages)
    for (const PlanStep& s : plan.stages[static_cast<size_t>(worker_.gpus.device())]) {
      now.micro = s.chunk < 0 ? 0 : static_cast<size_t>(s.chunk);
      execute(s, now);
    }
  for (const PlanStep& s : plan.update) execute(s, now);
  if (uses_.stages) uses_.stages->end_step();
  if (uses_.exchange) uses_.exchange->end_step();
}

// Whether only another device of the replica executes a step. Where a step belongs to an operation
// of a pipeline, or has a root, `device` is the other side.
bool GpuStep::elsewhere(const PlanStep& s) const {
  const bool has_other_side =
      s.chunk >= 0 || s.op == PlanOp::gather || s.op == PlanOp::broadcast || uses_.gather;
  return s.device >= 0 && !has_other_side && s.device != worker_.gpus.device();
}

void GpuStep::execute(const PlanStep& s, InProgress& now) {
  if (elsewhere(s)) return;
  switch (s.op) {
    case PlanOp::load:
      return load(s, now);
    case PlanOp::load_targets:
      return load_targets(now);
    case PlanOp::run:
      return run(s, now);
    case PlanOp::add_gradients:
      return add_gradients(s, now);
    case PlanOp::round_gradients:
      return uses_.update.round_gradients();
    case PlanOp::gather:
      return gather(s, now);
    case PlanOp::scatter:
      return uses_.gather->scatter(now.rows.micro[now.micro], binding(now));
    case PlanOp::barrier:
      return s.scope == PlanStep::Scope::peers ? worker_.gpus.peer_barrier()
                                               : worker_.gpus.barrier();
    case PlanOp::record:
      return s.chunk >= 0 ? uses_.stages->record(s) : uses_.exchange->record();
    case PlanOp::wait:
      if (s.actor == PlanStep::Actor::hosts) return worker_.wait();
      return s.chunk >= 0 ? uses_.stages->wait(s) : uses_.exchange->wait();
    case PlanOp::send:
    case PlanOp::receive:
    case PlanOp::send_receive:
      return uses_.stages->exchange(s, binding(now));
    case PlanOp::copy_to_host:
      return uses_.exchange->copy_to_host(s.quantity, losses_.terms_of(s.quantity));
    case PlanOp::copy_from_host:
      return uses_.exchange->copy_from_host(s.quantity, losses_.terms_of(s.quantity));
    case PlanOp::all_reduce:
    case PlanOp::reduce_scatter:
    case PlanOp::all_gather:
      return s.actor == PlanStep::Actor::hosts
                 ? uses_.exchange->share_norm_partials_on_hosts()
                 : uses_.exchange->call(s, losses_.terms_of(s.quantity));
    case PlanOp::sum:
      return sum(s, now);
    case PlanOp::decide:
      if (!uses_.stages) uses_.update.join_pieces();
      return losses_.decide(now.step, now.loss);
    case PlanOp::broadcast:
      return broadcast_decision(now);
    case PlanOp::update:
      return uses_.update.update();
    case PlanOp::draw_masks:  // of CPUs only
    case PlanOp::compress:
      return;
  }
}

void GpuStep::begin(const GpuBinding* b, const InProgress& now) {
  begin_batch(worker_, b, now.rows, now.micro, uses_.launch_queue.entry(now.step),
              worker_.session.model.divisor != Divisor::targets);
}

void GpuStep::load(const PlanStep& s, const InProgress& now) {
  GpuBinding* const b = binding(now);
  const bool last = !uses_.stages || s.stage == worker_.stages.last();
  begin(last ? b : nullptr, now);  // the divisor is kept in the last stage's memory
  if (!b) return;
  if (!uses_.stages || s.stage == 0) batch_input_->enqueue_input(*b, now.micro, now.slot);
  if (last) batch_input_->enqueue_target(*b, now.micro, now.slot);
}

void GpuStep::load_targets(const InProgress& now) {
  GpuBinding* const b = uses_.bindings.find(now.rows.micro[now.micro], ProgramKind::train);
  if (!b) return;
  begin_batch(worker_, b, now.rows, now.micro, uses_.launch_queue.entry(now.step), false);
  batch_input_->enqueue_target(*b, now.micro, now.slot);
}

void GpuStep::run(const PlanStep& s, InProgress& now) {
  if (s.part == Part::prologue) return losses_.run_prologue(now.rows, now.micro);
  GpuBinding* const b = binding(now);
  if (s.part == Part::loss) {
    now.loss = losses_.run(now.rows, now.micro, b);
    return;
  }
  if (uses_.stages) return run_stage(s, now, b);
  if (s.part == Part::backward) return run_backward(s, now, b);
  parts_.run(s.part, b, 0, parts_.program_of(b).part(s.part).size());
}

void GpuStep::run_stage(const PlanStep& s, const InProgress& now, GpuBinding* b) {
  if (s.part == Part::backward) begin(nullptr, now);
  parts_.run_stage(s.part, s.stage, b, program_kind(worker_.session, now.micro));
  if (s.part == Part::backward && s.chunk == 0 && !b)
    each_stored(s.stage, [&](size_t begin, size_t end) { uses_.update.no_gradients(begin, end); });
}

// Continues the backward part to the instruction that completes the step's bucket, or to its end.
void GpuStep::run_backward(const PlanStep& s, InProgress& now, GpuBinding* b) {
  if (now.backward == 0 && !b && now.micro == 0)
    uses_.update.no_gradients(0, worker_.session.model.layout.stored);
  const Program& program = parts_.program_of(b);
  const size_t begin = now.backward;
  now.backward = s.until < 0 ? program.part(s.part).size()
                             : made_after_.at(&program)[static_cast<size_t>(s.until)] + 1;
  parts_.run(s.part, b, begin, now.backward);
  if (s.until < 0) now.backward = 0;
}

template <class F>
void GpuStep::each_stored(int stage, F f) const {
  for (const UpdateRange& r :
       stored_ranges(worker_.session.model.graph, worker_.session.model.layout,
                     [&](int s) { return s == stage; })) {
    const size_t begin = worker_.share.at(r.begin);
    f(begin, begin + r.count());
  }
}

void GpuStep::add_gradients(const PlanStep& s, const InProgress& now) {
  if (worker_.row_count(now.rows.micro[now.micro]) == 0) return;
  if (uses_.stages)
    return each_stored(s.stage,
                       [&](size_t begin, size_t end) { uses_.update.add_gradients(begin, end); });
  const auto& buckets = worker_.session.plan.buckets;
  const Bucket range = s.bucket < 0 ? Bucket{0, worker_.session.model.layout.stored}
                                    : buckets[0][static_cast<size_t>(s.bucket)];
  uses_.update.add_gradients(range.begin, range.end);
}

void GpuStep::gather(const PlanStep& s, const InProgress& now) {
  if (s.quantity == Quantity::outputs)
    return uses_.gather->gather(now.rows.micro[now.micro], binding(now));
  uses_.update.join_pieces();
  uses_.stages->gather_norm_partials(uses_.update);
}

void GpuStep::sum(const PlanStep& s, const InProgress& now) {
  if (s.quantity == Quantity::squares) return uses_.update.measure();
  if (s.actor == PlanStep::Actor::hosts)
    return uses_.exchange->sum_on_host(s.quantity, losses_.terms_of(s.quantity));
  losses_.sum_divisor(now.rows);
}

void GpuStep::broadcast_decision(const InProgress& now) {
  if (worker_.stages.has_last()) return uses_.stages->broadcast_decision();
  cuda::launch(worker_.stream(),
               cuda::ApplyDecision{.decided = uses_.stages->receive_decision(),
                                   .state = worker_.context.state,
                                   .report = uses_.launch_queue.report(now.step)},
               1);
}

// What follows the update on all GPUs: replicas that updated pieces gather the others' weights.
void GpuStep::share_weights() {
  const StepRows none;
  InProgress now{.rows = none};
  bool updated = false;
  for (const PlanStep& s : worker_.session.plan.update) {
    if (updated) execute(s, now);
    updated = updated || s.op == PlanOp::update;
  }
}

}  // namespace dpt
