#include "engine/cpu/evaluation.h"

#include "engine/cpu/host_exchange.h"
#include "engine/evaluation.h"

namespace dpt {

void CpuEvaluation::begin(int group, const StepInput& input, size_t slot) {
  Binding* b = bindings_.find(group, input.rows->micro[0], ProgramKind::test, slot);
  if (!b) return;
  if (worker_.stages.has_first()) input_.inputs(*b, group, input, 0);
  if (!worker_.stages.has_last()) return;
  input_.targets(*b, group, input, 0, worker_.stages.has_first());
  b->set_divisor(1);
  b->run(Part::prologue, worker_.stages.last());
}

void CpuEvaluation::end(int group, const MicroBatch& micro, size_t slot) const {
  Binding* b = bindings_.find(group, micro, ProgramKind::test, slot);
  if (!b || !worker_.stages.has_last()) return;
  b->run(Part::loss, worker_.stages.last());
  const Session& session = worker_.session;
  const Graph& graph = b->program().graph;
  const Rows shards = worker_.shards(group);
  for (int64_t s = shards.begin; s < shards.end; ++s) {
    const int64_t n = micro[static_cast<size_t>(s)].rows.count();
    if (n == 0) continue;
    const auto at = static_cast<size_t>(s - shards.begin);
    const bool weighs = session.model.divisor == Divisor::targets;
    add_evaluation(session.model, worker_.buffers.evaluation(static_cast<int>(s)),
                   {.loss = b->loss(at),
                    .weight = weighs ? b->target_weight(at) : 0,
                    .correct = b->has_correct() ? b->correct(at) : 0},
                   n);
    if (session.metrics.size() > 0)
      session.metrics.add(b->view(graph.output, at), b->view(graph.target, at),
                          worker_.buffers.metrics(static_cast<int>(s)));
  }
}

void CpuEvaluation::run_batch(const StepInput& input) {
  const MicroBatch& micro = input.rows->micro[0];
  for (const int g : worker_.own) {
    begin(g, input);
    if (Binding* b = bindings_.find(g, micro, ProgramKind::test)) b->run(Part::forward);
    end(g, micro);
  }
}

void CpuEvaluation::run_batch_with_sync_points(const StepInput& input) {
  const MicroBatch& micro = input.rows->micro[0];
  for (const int g : worker_.own) begin(g, input);
  sync_points_.run(worker_.session.model.test_sync_points,
                   {.part = Part::forward, .micro = micro, .kind = ProgramKind::test});
  for (const int g : worker_.own) end(g, micro);
  // The next batch overwrites the sums.
  if (sync_points_.waits()) worker_.team.barrier(worker_.team_number);
}

// Batches move through the stages like the chunks of a training step. A stage's slot is free again
// when the last stage is done with the batch that used it: nothing reads that batch afterwards.
void CpuEvaluation::run_batch_in_stages(const StepInput& input) {
  const MicroBatch& micro = input.rows->micro[0];
  const size_t slot = static_cast<size_t>(input.batch) % bindings_.slot_count();
  bool loaded = false;
  for (int stage = 0; stage <= worker_.stages.last(); ++stage) {
    if (!worker_.stages.has(stage)) continue;
    if (stage > 0) posts_.wait_for_test(stage - 1, input.batch);
    if (const int64_t there = worker_.session.model.same_slot_before(stage, input.batch);
        there >= 0)
      posts_.wait_for_test(worker_.stages.last(), there);
    for (const int g : worker_.own)
      if (!loaded) begin(g, input, slot);
    loaded = true;
    sync_points_.run_stage({.part = Part::forward,
                            .micro = micro,
                            .kind = ProgramKind::test,
                            .stage = stage,
                            .chunk = slot});
    if (stage == worker_.stages.last())
      for (const int g : worker_.own) end(g, micro, slot);
    posts_.post();
  }
}

Evaluation CpuEvaluation::run(const StepExecutor::BatchesDone& done) {
  const Session& session = worker_.session;
  const BatchPartitioner& batches = *session.batches.test;
  const std::vector<uint32_t> order = session.data.test_order();
  worker_.among_hosts([](HostExchange& e) { e.results().send_statistics(); });
  if (prefetch_ != nullptr) {
    if (worker_.number % session.devices.topology.workers_per_rank() == 0) prefetch_->begin(order);
    worker_.team.rank_barrier(worker_.team_number);
  }
  if (worker_.stages.has_last())
    for (const int g : worker_.own)
      for (int64_t s = worker_.shards(g).begin; s < worker_.shards(g).end; ++s)
        clear_evaluation(worker_.buffers, static_cast<int>(s));
  const bool in_stages = !session.plan.schedule.empty();
  StepRows rows;
  for (int64_t batch = 0; batch < batches.steps(); ++batch) {
    batches.step(batch, rows);
    const StepInput input{.rows = &rows, .order = order, .batch = batch};
    if (in_stages)
      run_batch_in_stages(input);
    else if (session.model.test_sync_points == 0)
      run_batch(input);
    else
      run_batch_with_sync_points(input);
    if (done) done(batch + 1);
  }
  if (in_stages) posts_.end_evaluation(batches.steps());
  worker_.among_hosts([](HostExchange& e) { e.results().gather_evaluation(); });
  return end_evaluation(session, worker_.buffers,
                        [&] { worker_.team.barrier(worker_.team_number); });
}

}  // namespace dpt
