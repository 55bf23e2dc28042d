// Executor: models whose stages lie on several devices. Each worker executes the plan's list for
// its device: forward and backward passes of its stages, each as soon as the neighboring stage is
// done with the chunk. Worker w of every device of a replica has the same shards, so a worker only
// ever waits for one other worker at a time.
#include <algorithm>

#include "engine/cpu/sync_points.h"

namespace dpt {

void Executor::run_pipeline(const StepInput& input) {
  const auto& schedule = session_.plan.schedule;
  for (const PlanStep& s : session_.plan.stages[static_cast<size_t>(device_)]) {
    if (s.op == PlanOp::wait) {
      wait_for(s);
      continue;
    }
    traced(s, s.chunk, [&] { do_stage_step(s, input); });
    if (s.op == PlanOp::record && clock_) clock_->mark(PlanStepClock::compute);
  }
  for (size_t d = 0; d < schedule.size(); ++d)
    posted_[d] += static_cast<uint32_t>(schedule[d].size());
}

void Executor::do_stage_step(const PlanStep& s, const StepInput& input) {
  if (s.op == PlanOp::load) return load_stage(s, input);
  if (s.op == PlanOp::run) return run_stage_op(s, input);
  team_.post(worker_);  // record
}

void Executor::wait_for(const PlanStep& s) {
  const auto& ops = session_.plan.schedule[static_cast<size_t>(s.device)];
  const auto at = std::ranges::find(ops, s.stage_op());
  const auto done = static_cast<uint32_t>(at - ops.begin()) + 1;
  const int other = worker_ + (s.device - device_) * session_.topology.workers_per_device;
  traced(s, s.chunk, [&] { team_.wait_for(other, posted_[static_cast<size_t>(s.device)] + done); });
  if (clock_) clock_->mark(PlanStepClock::waiting);
}

// Runs one stage of a part for all of the worker's shard groups.
void Executor::run_stage(Part part, int stage, const Micro& micro, int kind, int chunk) {
  const Graph& graph = kind == kTest        ? session_.test_programs.begin()->second.graph
                       : kind == kTrainLast ? session_.last_programs.begin()->second.graph
                                            : session_.graph;
  const int sync_points = graph.sync_points(part, stage);
  if (sync_points == 0) {
    for (int g : own_)
      if (Binding* b = binding(g, micro, kind, chunk)) b->run(part, stage);
    return;
  }
  run_in_pieces(
      sync_points, part, micro, kind,
      [](int, Binding& b, const Binding::Piece& piece) { b.run(piece); }, stage, chunk);
  wait_at_sync_point();  // all must read the last sums before the next chunk overwrites them
}

void Executor::load_stage(const PlanStep& s, const StepInput& input) {
  const Micro& micro = input.rows->micro[static_cast<size_t>(s.chunk)];
  for (int g : own_) {
    Binding* b = binding(g, micro, program_kind(s.chunk), s.chunk);
    if (!b) continue;
    set_context(*b, g, input, s.chunk);
    if (s.stage == 0) load_first(*b, g, input, s.chunk, samples_.train);
    if (s.stage == last_stage()) load_last(*b, g, input, s.chunk);
  }
}

void Executor::run_stage_op(const PlanStep& s, const StepInput& input) {
  if (s.part == Part::loss) {
    for (int g : own_) loss(g, s.chunk, input);
    return;
  }
  const Micro& micro = input.rows->micro[static_cast<size_t>(s.chunk)];
  run_stage(s.part, s.stage, micro, program_kind(s.chunk), s.chunk);
  if (s.part != Part::backward) return;
  for (int g : own_)
    for (const UpdateRange& range : stage_stored_[static_cast<size_t>(s.stage)])
      finish_gradients(g, s.chunk, input, range);
}

// Evaluation batches move through the stages like the chunks of a training step. A stage's slot is
// free again when the last stage is done with the batch that used it: nothing reads that batch
// afterwards.
void Executor::evaluate_in_stages(std::span<const uint32_t> order, const BatchesDone& done) {
  const int64_t batches = session_.test_batches->steps();
  StepRows rows;
  for (int64_t batch = 0; batch < batches; ++batch) {
    session_.test_batches->step(batch, rows);
    const Micro& micro = rows.micro[0];
    const int slot = static_cast<int>(batch % slot_count_);
    bool loaded = false;
    for (int stage = 0; stage <= last_stage(); ++stage) {
      if (!has_stage(stage)) continue;
      if (stage > 0) wait_for_test(stage - 1, batch);
      if (const int64_t there = session_.same_slot_before(stage, batch); there >= 0)
        wait_for_test(last_stage(), there);
      for (int g : own_)
        if (!loaded) begin_evaluation(g, micro, order, batch, slot);
      loaded = true;
      run_stage(Part::forward, stage, micro, kTest, slot);
      if (stage == last_stage())
        for (int g : own_) end_evaluation(g, micro, slot);
      team_.post(worker_);
    }
    if (done) done(batch + 1);
  }
  const auto& devices = session_.graph.stage_device;
  for (size_t d = 0; d < posted_.size(); ++d)
    posted_[d] += static_cast<uint32_t>(batches) *
                  static_cast<uint32_t>(std::ranges::count(devices, static_cast<int>(d)));
}

void Executor::wait_for_test(int stage, int64_t batch) {
  if (has_stage(stage)) return;
  const int device = session_.graph.stage_device[static_cast<size_t>(stage)];
  team_.wait_for(worker_ + (device - device_) * session_.topology.workers_per_device,
                 posted_[static_cast<size_t>(device)] +
                     static_cast<uint32_t>(session_.test_parts_until(stage, batch)));
}

}  // namespace dpt
