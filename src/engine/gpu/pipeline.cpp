// GpuExecutor: models whose stages lie on several GPUs (on CPUs: engine/cpu/pipeline.cpp). Each GPU
// executes the plan's list for its device (parallel/stage_lists.h). Chunks' gradients are added in
// order, so the result equals that of `accumulate` on one GPU. With several replicas, each stage's
// gradients are summed over replicas as soon as its last chunk's backward pass is enqueued.
//
// If each GPU belongs to a process, steps are captured like others: NCCL's calls order the GPUs. If
// GPUs belong to threads they are not captured, since a graph would have to wait for an event in
// the middle of another GPU's graph. Evaluations are never captured: their hosts stay only a few
// batches ahead of their GPUs.
#include "engine/gpu/executor.h"
#include "graph/operator.h"

namespace dpt {

// Runs a stage, with the sums over replicas of sync_batch_norm. Without rows it only takes part in
// the sums.
void GpuExecutor::run_stage(const PlanStep& op, GpuBinding* b) {
  const Part part = op.part;
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
    if (n.stage == op.stage && n.op->over_shards)
      exchange_->sum_now(b ? b->view(n.out[0]).data : nullptr, program.graph[n.out[0]].desc);
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
