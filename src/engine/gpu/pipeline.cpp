// GpuExecutor: models whose stages lie on several GPUs (on CPUs: engine/cpu/pipeline.cpp). Each
// GPU enqueues the ops of its stages in the order of the schedule. Chunks' gradients are added in
// order, so the result equals that of `accumulate` on one GPU. With several replicas, each stage's
// gradients are summed over replicas as soon as its last chunk's backward pass is enqueued
// (exchange.h).
//
// If each GPU belongs to a process, steps are captured like others: NCCL's calls order the GPUs. If
// GPUs belong to threads they are not captured, since a graph would have to wait for an event in
// the middle of another GPU's graph. Evaluations are never captured: their hosts stay only a few
// batches ahead of their GPUs.
#include "backend/cuda/interface/launch.h"
#include "backend/cuda/kernels/update.h"
#include "engine/gpu/executor.h"
#include "graph/operator.h"
#include "session/update_partition.h"

namespace dpt {

void GpuExecutor::enqueue_stages(const StepRows& rows, size_t step, size_t slot) {
  const bool divides = session_.divisor != Divisor::targets;
  if (!divides && has_stage(last_stage())) enqueue_divisor(rows, step, slot);
  const bool sums = exchange_ && exchange_->by_nccl();
  if (sums) exchange_->begin_ops();
  size_t own_ops = 0, losses = 0;
  for (const StageOp& op : stages_->ops()) {
    const auto chunk = static_cast<size_t>(op.chunk);
    const bool last = op.stage == last_stage();
    GpuBinding* const b = own(rows.micro[chunk]).rows.count() == 0
                              ? nullptr
                              : &binding(rows.micro[chunk], program_kind(chunk), chunk);
    if (!has_stage(op.stage)) {
      stages_->follow(op, b);
      continue;
    }
    stages_->begin(op);
    // The divisor is kept in the last stage's memory; its forward pass writes it.
    begin(last && !op.backward ? b : nullptr, rows, chunk, launch_queue_.entry(step), divides);
    op.backward ? backward_stage(op, b) : forward_stage(op, b, slot);
    if (last && !op.backward) {
      if (b) b->run(Part::loss, op.stage);
      update_.keep_loss(chunk, b ? b->view(b->program().graph.loss).data : nullptr);
      if (sums && ++losses == rows.micro.size()) exchange_->sum_losses();
    }
    stages_->end(op);
    if (sums) exchange_->after(own_ops++);
  }
  sum_gradients(has_stage(last_stage()));
  if (stages_->gather_norm_partials(update_)) {
    decide_update(rows, step, nullptr);
    stages_->broadcast_decision();
  } else {
    cuda::launch(*stream_,
                 cuda::ApplyDecision{.decided = stages_->receive_decision(),
                                     .state = context_.state,
                                     .report = launch_queue_.report(step)},
                 1);
  }
  stages_->end_step();
  update_.update();
  if (exchange_) exchange_->share_weights();
}

void GpuExecutor::forward_stage(const StageOp& op, GpuBinding* b, size_t slot) {
  const auto chunk = static_cast<size_t>(op.chunk);
  if (b && op.stage == 0) batch_input_->enqueue_input(*b, chunk, slot);
  if (b && op.stage == last_stage()) batch_input_->enqueue_target(*b, chunk, slot);
  run_stage(Part::forward, op, b);
}

// Runs a stage, with the sums over replicas of sync_batch_norm. Without rows it only takes part in
// the sums.
void GpuExecutor::run_stage(Part part, const StageOp& op, GpuBinding* b) {
  if (!exchange_ || !session_.spec.sync_batch_norm) {
    if (b) b->run(part, op.stage);
    return;
  }
  const bool apart = program_kind(static_cast<size_t>(op.chunk)) == train_last;
  const Program& program =
      b ? b->program() : (apart ? session_.last_programs : session_.programs).begin()->second;
  for (size_t i = 0, own = 0; i < program.part(part).size(); ++i) {
    const GraphNode& n = program.graph.nodes[program.part(part)[i].node];
    const bool here = has_stage(n.stage);  // then the binding contains the instruction
    if (b && here && n.stage == op.stage) b->run_one(part, own);
    own += here ? 1 : 0;
    if (n.stage == op.stage && n.op->name == "all_reduce")
      exchange_->sum_now(b ? b->view(n.out[0]).data : nullptr, program.graph[n.out[0]].desc);
  }
}

void GpuExecutor::backward_stage(const StageOp& op, GpuBinding* b) {
  run_stage(Part::backward, op, b);
  const bool first = op.chunk == 0;
  if (first == (b != nullptr)) return;  // gradients were written in place, or there are none to add
  for (const UpdateRange& r :
       stored_ranges(session_.graph, session_.layout, [&](int s) { return s == op.stage; })) {
    const size_t begin = share_.at(r.begin), end = begin + r.count();
    first ? update_.no_gradients(begin, end) : update_.add_gradients(begin, end);
  }
}

void GpuExecutor::evaluate_in_stages(const StepInput& input) {
  gpus_.begin_step();
  const Micro& micro = input.rows->micro[0];
  const auto binding_slot = static_cast<size_t>(input.batch);
  GpuBinding* const b =
      own(micro).rows.count() == 0 ? nullptr : &binding(micro, test, binding_slot);
  const size_t slot = test_batch_input_ ? test_batch_input_->make(input) : 0;
  for (int stage = 0; stage <= last_stage(); ++stage) {
    if (!has_stage(stage)) {
      stages_->follow_test(stage, input.batch, b);
      continue;
    }
    const bool last = stage == last_stage();
    stages_->begin_test(stage, input.batch);
    begin(last ? b : nullptr, *input.rows, 0, test_entry(input.batch), true);
    if (b && stage == 0) test_batch_input_->enqueue_input(*b, 0, slot);
    if (b && last) {
      test_batch_input_->enqueue_target(*b, 0, slot);
      b->run(Part::prologue, stage);
    }
    if (b) b->run(Part::forward, stage);
    if (b && last) {
      b->run(Part::loss, stage);
      keep_results(*b);
    }
    stages_->end_test(stage, input.batch);
    if (b && last) add_metrics(*b);
  }
  if (test_batch_input_) test_batch_input_->enqueued(slot);
}

}  // namespace dpt
