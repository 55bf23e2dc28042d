// GpuExecutor: executes the steps of a plan for one training step, by enqueuing or capturing what
// each of them says.
#include "backend/cuda/interface/launch.h"
#include "backend/cuda/kernels/gather.h"
#include "backend/cuda/kernels/update.h"
#include "engine/gpu/executor.h"
#include "graph/operator.h"
#include "session/update_partition.h"

namespace dpt {
namespace {

using Actor = PlanStep::Actor;
using When = PlanStep::When;

bool happens(When when, size_t micro, size_t micro_batches) {
  switch (when) {
    case When::last:
      return micro + 1 == micro_batches;
    case When::later:
      return micro > 0;
    case When::between:
      return micro + 1 < micro_batches;
    default:
      return true;
  }
}

// Steps of the prologue that every micro-batch takes.
bool each_micro_batch(const PlanStep& s) {
  return s.op == PlanOp::load_targets || s.op == PlanOp::run;
}

}  // namespace

void GpuExecutor::enqueue(const StepRows& rows, size_t step, size_t slot) {
  const Plan& plan = session_.plan;
  StepInProgress now{.rows = rows, .step = step, .slot = slot};
  const size_t micro_batches = rows.micro.size();
  for (now.micro = 0; now.micro < micro_batches; ++now.micro)
    for (const PlanStep& s : plan.prologue)
      if (each_micro_batch(s)) execute(s, now);
  for (const PlanStep& s : plan.prologue)
    if (!each_micro_batch(s)) execute(s, now);
  for (now.micro = 0; now.micro < micro_batches; ++now.micro)
    for (const PlanStep& s : plan.micro)
      if (happens(s.when, now.micro, micro_batches)) execute(s, now);
  if (stages_)
    for (const PlanStep& s : plan.stages[static_cast<size_t>(gpus_.device())]) {
      now.micro = s.chunk < 0 ? 0 : static_cast<size_t>(s.chunk);
      execute(s, now);
    }
  for (const PlanStep& s : plan.update) execute(s, now);
  if (stages_) stages_->end_step();
  if (exchange_) exchange_->end_step();
}

// Whether only another device of the replica executes a step. Where a step belongs to an operation
// of a pipeline, or has a root, `device` is the other side.
bool GpuExecutor::elsewhere(const PlanStep& s) const {
  const bool has_other_side =
      s.chunk >= 0 || s.op == PlanOp::gather || s.op == PlanOp::broadcast || gather_;
  return s.device >= 0 && !has_other_side && s.device != gpus_.device();
}

void GpuExecutor::execute(const PlanStep& s, StepInProgress& now) {
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
      return update_.round_gradients();
    case PlanOp::gather:
      return gather(s, now);
    case PlanOp::scatter:
      return gather_->scatter(now.rows.micro[now.micro], binding_of(now));
    case PlanOp::barrier:
      return s.scope == PlanStep::Scope::peers ? gpus_.peer_barrier() : gpus_.barrier();
    case PlanOp::record:
      return s.chunk >= 0 ? stages_->record(s) : exchange_->record();
    case PlanOp::wait:
      if (s.actor == Actor::hosts) return wait();
      return s.chunk >= 0 ? stages_->wait(s) : exchange_->wait();
    case PlanOp::send:
    case PlanOp::receive:
    case PlanOp::send_receive:
      return stages_->exchange(s, binding_of(now));
    case PlanOp::copy_to_host:
      return exchange_->copy_to_host(s.quantity, terms_of(s.quantity));
    case PlanOp::copy_from_host:
      return exchange_->copy_from_host(s.quantity, terms_of(s.quantity));
    case PlanOp::all_reduce:
    case PlanOp::reduce_scatter:
    case PlanOp::all_gather:
      return s.actor == Actor::hosts ? exchange_->share_norm_partials_on_hosts()
                                     : exchange_->call(s, terms_of(s.quantity));
    case PlanOp::sum:
      return sum(s, now);
    case PlanOp::decide:
      return decide(now);
    case PlanOp::broadcast:
      return broadcast_decision(now);
    case PlanOp::update:
      return update_.update();
    case PlanOp::draw_masks:  // of CPUs only
    case PlanOp::compress:
      return;
  }
}

// The binding of the micro-batch's rows on this GPU; null: it has none.
GpuBinding* GpuExecutor::binding_of(const StepInProgress& now) {
  const Micro& micro = now.rows.micro[now.micro];
  if (own(micro).rows.count() == 0) return nullptr;
  if (stages_) return &binding(micro, program_kind(now.micro), now.micro);
  return &binding(micro, now.micro == 0 ? train : train_more);
}

// b: null if this GPU has no rows of the micro-batch.
void GpuExecutor::begin(const GpuBinding* b, const StepRows& rows, size_t micro,
                        const cuda::StepEntry* entry, bool divides) {
  const auto address = [&](ValueId Graph::*value) {
    const ValueId v = b ? b->program().graph.*value : kNoValue;
    return v == kNoValue ? nullptr : reinterpret_cast<float*>(b->view(v).data);
  };
  const ShardRows& mine = own(rows.micro[micro]);
  cuda::launch(*stream_,
               cuda::BeginBatch{.entry = entry,
                                .state = context_.state,
                                .offset = mine.rows.begin - own(rows.micro[0]).rows.begin,
                                .first_sample = mine.first_sample,
                                .last_chunk = session_.last_chunk(rows, micro),
                                .divides = divides,
                                .divisor = address(&Graph::divisor),
                                .scale = address(&Graph::scale)},
               1);
}

void GpuExecutor::begin(const GpuBinding* b, const StepInProgress& now) {
  begin(b, now.rows, now.micro, launch_queue_.entry(now.step),
        session_.divisor != Divisor::targets);
}

void GpuExecutor::load(const PlanStep& s, const StepInProgress& now) {
  GpuBinding* const b = binding_of(now);
  const bool last = !stages_ || s.stage == last_stage();
  begin(last ? b : nullptr, now);  // the divisor is kept in the last stage's memory
  if (!b) return;
  if (!stages_ || s.stage == 0) batch_input_->enqueue_input(*b, now.micro, now.slot);
  if (last) batch_input_->enqueue_target(*b, now.micro, now.slot);
}

void GpuExecutor::load_targets(const StepInProgress& now) {
  if (own(now.rows.micro[now.micro]).rows.count() == 0) return;
  GpuBinding& b = binding(now.rows.micro[now.micro], train);
  begin(&b, now.rows, now.micro, launch_queue_.entry(now.step), false);
  batch_input_->enqueue_target(b, now.micro, now.slot);
}

void GpuExecutor::run(const PlanStep& s, StepInProgress& now) {
  if (s.part == Part::prologue) return run_prologue(now);
  GpuBinding* const b = binding_of(now);
  if (s.part == Part::loss) return run_loss(now, b);
  if (stages_) {
    if (s.part == Part::backward) begin(nullptr, now);
    run_stage(s, b);
    if (s.part == Part::backward && s.chunk == 0 && !b)
      each_stored(s.stage, [&](size_t begin, size_t end) { update_.no_gradients(begin, end); });
    return;
  }
  if (s.part == Part::forward) return run_part(Part::forward, b, 0, instructions(s.part, b));
  if (now.backward == 0 && !b && now.micro == 0) update_.no_gradients(0, session_.layout.stored);
  const size_t begin = now.backward;
  now.backward = s.until < 0 ? instructions(s.part, b)
                             : made_after_.at(&program_of(b))[static_cast<size_t>(s.until)] + 1;
  run_part(Part::backward, b, begin, now.backward);
  if (s.until < 0) now.backward = 0;
}

// The part of the divisor that this GPU's targets decide.
void GpuExecutor::run_prologue(const StepInProgress& now) {
  double* const weight = terms_of(Quantity::divisor).data + now.micro;
  if (own(now.rows.micro[now.micro]).rows.count() == 0)
    return stream_->fill(weight, 0, sizeof(double));
  GpuBinding& b = binding(now.rows.micro[now.micro], train);
  b.run(Part::prologue, last_stage());
  stream_->copy(weight, b.view(b.program().graph.target_weight).data, sizeof(double));
}

// Without rows any program will do: the order of the sums is the same in all.
const Program& GpuExecutor::program_of(const GpuBinding* b) const {
  return b ? b->program() : session_.programs.begin()->second;
}

size_t GpuExecutor::instructions(Part part, const GpuBinding* b) const {
  return program_of(b).part(part).size();
}

// Runs instructions [begin, end) of a part, with the sums over GPUs of sync_batch_norm. Without
// rows it only takes part in the sums.
void GpuExecutor::run_part(Part part, GpuBinding* b, size_t begin, size_t end) {
  const Program& program = program_of(b);
  const bool syncs = exchange_ && session_.spec.sync_batch_norm;
  const std::vector<Instruction>& all = program.part(part);
  for (size_t i = begin; i < end; ++i) {
    if (b) b->run_one(part, i);
    const GraphNode& n = program.graph.nodes[all[i].node];
    if (syncs && n.op->over_shards)
      exchange_->sum_now(b ? b->view(n.out[0]).data : nullptr, program.graph[n.out[0]].desc);
  }
}

// Keeps the loss for the decision. A step's only loss stays in place until then.
void GpuExecutor::run_loss(StepInProgress& now, GpuBinding* b) {
  if (gather_) return run_losses_of_all(now, b);
  if (b) b->run(Part::loss, last_stage());
  const std::byte* const loss = b ? b->view(b->program().graph.loss).data : nullptr;
  if (!exchange_ && !stages_ && GpuUpdate::losses_of_step(session_) == 1)
    now.loss = loss;
  else
    update_.keep_loss(now.micro, loss);
}

void GpuExecutor::run_losses_of_all(const StepInProgress& now, GpuBinding* b) {
  const Micro& micro = now.rows.micro[now.micro];
  const auto shards = static_cast<size_t>(session_.topology.shards);
  for (size_t s = 0; s < shards; ++s) {
    const int64_t rows = micro[s].rows.count();
    const std::byte* loss = nullptr;
    if (gather_->here() && rows > 0) {
      const bool mine = static_cast<int>(s) == shard_;
      if (mine) b->run(Part::loss);
      loss = mine ? b->view(b->program().graph.loss).data
                  : gather_->loss_of(static_cast<int>(s), rows);
    }
    update_.keep_loss(now.micro * shards + s, loss);
  }
}

template <class F>
void GpuExecutor::each_stored(int stage, F f) const {
  for (const UpdateRange& r :
       stored_ranges(session_.graph, session_.layout, [&](int s) { return s == stage; })) {
    const size_t begin = share_.at(r.begin);
    f(begin, begin + r.count());
  }
}

void GpuExecutor::add_gradients(const PlanStep& s, const StepInProgress& now) {
  if (own(now.rows.micro[now.micro]).rows.count() == 0) return;
  if (stages_)
    return each_stored(s.stage,
                       [&](size_t begin, size_t end) { update_.add_gradients(begin, end); });
  const auto& buckets = session_.plan.buckets;
  const Bucket range =
      s.bucket < 0 ? Bucket{0, session_.layout.stored} : buckets[0][static_cast<size_t>(s.bucket)];
  update_.add_gradients(range.begin, range.end);
}

void GpuExecutor::gather(const PlanStep& s, const StepInProgress& now) {
  if (s.quantity == Quantity::outputs)
    return gather_->gather(now.rows.micro[now.micro], binding_of(now));
  update_.join_pieces();
  stages_->gather_norm_partials(update_);
}

GpuExchange::Terms GpuExecutor::terms_of(Quantity what) const {
  if (what == Quantity::divisor)
    return {.data = reinterpret_cast<double*>(target_weights_.data()), .count = micro_batches_};
  if (what == Quantity::loss)
    return {.data = update_.losses(), .count = GpuUpdate::losses_of_step(session_)};
  return {};
}

void GpuExecutor::sum(const PlanStep& s, const StepInProgress& now) {
  if (s.quantity == Quantity::squares) return update_.measure();
  if (s.actor == Actor::hosts) return exchange_->sum_on_host(s.quantity, terms_of(s.quantity));
  cuda::launch(*stream_,
               cuda::SumDivisor{.weights = terms_of(Quantity::divisor).data,
                                .micro_batches = std::ssize(now.rows.micro),
                                .state = context_.state},
               1);
}

void GpuExecutor::decide(const StepInProgress& now) {
  if (!stages_) update_.join_pieces();
  update_.decide_update(now.step, now.loss);
  if (!reports_first()) return;
  const auto count = static_cast<int64_t>(GpuUpdate::losses_of_step(session_));
  const bool weighted = session_.divisor == Divisor::targets;
  const GpuExchange::Terms weights = terms_of(Quantity::divisor);
  cuda::launch(
      *stream_,
      cuda::ReportFirst{.losses = update_.losses() + count,
                        .weights = weights.data + (weighted ? weights.count : 0),
                        .losses_count = count,
                        .weights_count = weighted ? static_cast<int64_t>(weights.count) : 0,
                        .state = context_.state,
                        .report = launch_queue_.report(now.step)},
      1);
}

void GpuExecutor::broadcast_decision(const StepInProgress& now) {
  if (has_stage(last_stage())) return stages_->broadcast_decision();
  cuda::launch(*stream_,
               cuda::ApplyDecision{.decided = stages_->receive_decision(),
                                   .state = context_.state,
                                   .report = launch_queue_.report(now.step)},
               1);
}

// What follows the update on all GPUs: replicas that updated pieces gather the others' weights.
void GpuExecutor::share_weights() {
  const StepRows none;
  StepInProgress now{.rows = none};
  bool updated = false;
  for (const PlanStep& s : session_.plan.update) {
    if (updated) execute(s, now);
    updated = updated || s.op == PlanOp::update;
  }
}

}  // namespace dpt
