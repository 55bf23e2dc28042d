#include "engine/gpu/evaluation.h"

#include <algorithm>
#include <bit>

#include "backend/cuda/interface/launch.h"
#include "engine/evaluation.h"
#include "engine/gpu/launch_queue.h"

namespace dpt {

using cuda::MemoryKind;

namespace {

// Not the shape of any training step: those have three numbers for each micro-batch and shard.
constexpr int64_t kTestBatch = -1;

}  // namespace

GpuEvaluation::GpuEvaluation(GpuWorker& worker, const GpuBindingTable& bindings,
                             CapturedGraphs& graphs, BatchInput* batch_input, GpuStages* stages,
                             PrefetchStream* prefetch, const WaitForGpu& wait_for)
    : worker_(worker),
      bindings_(bindings),
      graphs_(graphs),
      batch_input_(batch_input),
      stages_(stages),
      prefetch_(prefetch),
      entries_(worker.api(), MemoryKind::device,
               static_cast<size_t>(worker.session.batches.test->steps()) * sizeof(cuda::StepEntry)),
      entry_(worker.api(), MemoryKind::device, sizeof(cuda::StepEntry)),
      sums_(worker.api(), MemoryKind::device, sizeof(cuda::TestSums)),
      results_(worker.api(), MemoryKind::pinned, sizeof(Results)),
      metrics_(worker, wait_for) {
  upload_entries();
}

// The entries of all batches are the same in each evaluation. Batches without rows of this GPU are
// left out, unless other GPUs have stages of the model.
void GpuEvaluation::upload_entries() {
  const BatchPartitioner& batches = *worker_.session.batches.test;
  const cuda::DeviceBuffer host(worker_.api(), MemoryKind::pinned, entries_.bytes());
  auto* next = reinterpret_cast<cuda::StepEntry*>(host.data());
  StepRows rows;
  for (int64_t i = 0; i < batches.steps(); ++i) {
    batches.step(i, rows);
    const Rows mine = worker_.own(rows.micro[0]).rows;
    if (mine.count() > 0 || stages_) *next++ = {.step = 0, .position = mine.begin, .divisor = 1};
  }
  worker_.stream().copy(entries_.data(), host.data(), host.bytes());
  worker_.stream().synchronise();
}

// Enqueues the next batch; the GPU itself advances to its entry.
void GpuEvaluation::enqueue(const StepRows& rows, size_t slot) {
  GpuBinding& b = bindings_.at(rows.micro[0], ProgramKind::test);
  auto* const current = reinterpret_cast<cuda::StepEntry*>(entry_.data());
  cuda::launch(worker_.stream(),
               cuda::NextTestBatch{.entries = entry(0),
                                   .count = worker_.session.batches.test->steps(),
                                   .done = sums(),
                                   .entry = current},
               1);
  begin_batch(worker_, &b, rows, 0, current, true);
  batch_input_->enqueue_input(b, 0, slot);
  batch_input_->enqueue_target(b, 0, slot);
  for (const Part part : {Part::prologue, Part::forward, Part::loss}) b.run(part);
  keep_results(b);
}

void GpuEvaluation::keep_results(const GpuBinding& b) {
  const Graph& graph = b.program().graph;
  const auto result = [&](ValueId v) {
    return v == kNoValue ? nullptr : reinterpret_cast<const double*>(b.view(v).data);
  };
  const bool weighs = worker_.session.model.divisor == Divisor::targets;
  cuda::launch(worker_.stream(),
               cuda::AddTestBatch{.loss = result(graph.loss),
                                  .weight = weighs ? result(graph.target_weight) : nullptr,
                                  .correct = result(graph.correct),
                                  .done = sums()},
               1);
}

cuda::CapturedGraph& GpuEvaluation::graph(const StepRows& rows, size_t slot, size_t batches) {
  return graphs_.get(shape_of_batch(rows), slot, batches, [&](size_t) { enqueue(rows, slot); });
}

StepShape GpuEvaluation::shape_of_batch(const StepRows& rows) const {
  const ShardRows& mine = worker_.own(rows.micro[0]);
  return {mine.rows.count(), mine.first_sample, kTestBatch};
}

bool GpuEvaluation::warm(const StepRows& rows) const {
  return worker_.session.settings.spec.graphs && graphs_.warm(shape_of_batch(rows));
}

// Enqueues `batches` batches of the same shape, `first` being the first of them.
void GpuEvaluation::launch(const StepInput& first, size_t batches) {
  const size_t slot = batch_input_->make(first);
  if (warm(*first.rows))
    worker_.stream().launch(graph(*first.rows, slot, batches));
  else
    for (size_t i = 0; i < batches; ++i) enqueue(*first.rows, slot);
  batch_input_->enqueued(slot);
  graphs_.set_warm(shape_of_batch(*first.rows));
  metrics_.add(bindings_.at(first.rows->micro[0], ProgramKind::test));
}

// Enqueues all test batches of this GPU, several per launch. Returns the number of their samples.
int64_t GpuEvaluation::launch_all(std::span<const uint32_t> order,
                                  const StepExecutor::BatchesDone& done) {
  const BatchPartitioner& batches = *worker_.session.batches.test;
  StepRows rows, first;  // first: the first of the batches that wait for a launch
  StepInput input{.rows = &first, .order = order};
  size_t waiting = 0, most = 1;
  int64_t samples = 0;
  const auto launch_waiting = [&] {
    while (waiting > 0) {
      const size_t n = std::min(most, std::bit_floor(waiting));
      launch(input, n);
      waiting -= n;
    }
  };
  for (int64_t batch = 0; batch < batches.steps(); ++batch) {
    batches.step(batch, rows);
    const ShardRows& mine = worker_.own(rows.micro[0]);
    if (mine.rows.count() == 0) continue;
    samples += mine.rows.count();
    const ShardRows* const other = waiting > 0 ? &worker_.own(first.micro[0]) : nullptr;
    if (waiting == most || (other && (other->rows.count() != mine.rows.count() ||
                                      other->first_sample != mine.first_sample)))
      launch_waiting();
    if (done && waiting == 0) done(batch);
    if (waiting++ > 0) continue;
    first = rows;
    input.batch = batch;
    const bool one = !warm(first) || batch_input_->slots() > 1 || metrics_.wanted();
    most = one ? 1 : LaunchQueue::together(graph(first, 0, 1).nodes());
  }
  launch_waiting();
  if (done) done(batches.steps());
  return samples;
}

// The same on a GPU that has some stages of the model.
int64_t GpuEvaluation::run_in_stages(std::span<const uint32_t> order,
                                     const StepExecutor::BatchesDone& done) {
  const BatchPartitioner& batches = *worker_.session.batches.test;
  StepRows rows;
  int64_t samples = 0;
  for (int64_t batch = 0; batch < batches.steps(); ++batch) {
    batches.step(batch, rows);
    run_batch_in_stages({.rows = &rows, .order = order, .batch = batch});
    if (done) done(batch + 1);
    samples += worker_.own(rows.micro[0]).rows.count();
  }
  stages_->end_evaluation(batches.steps());
  return samples;
}

void GpuEvaluation::run_batch_in_stages(const StepInput& input) {
  worker_.gpus.begin_step();
  const MicroBatch& micro = input.rows->micro[0];
  const auto binding_slot = static_cast<size_t>(input.batch);
  GpuBinding* const b = bindings_.find(micro, ProgramKind::test, binding_slot);
  const size_t slot = batch_input_ ? batch_input_->make(input) : 0;
  for (int stage = 0; stage <= worker_.stages.last(); ++stage) {
    if (!worker_.stages.has(stage)) {
      stages_->follow_test(stage, input.batch, b);
      continue;
    }
    const bool last = stage == worker_.stages.last();
    stages_->begin_test(stage, input.batch);
    begin_batch(worker_, last ? b : nullptr, *input.rows, 0, entry(input.batch), true);
    if (b && stage == 0) batch_input_->enqueue_input(*b, 0, slot);
    if (b && last) {
      batch_input_->enqueue_target(*b, 0, slot);
      b->run(Part::prologue, stage);
    }
    if (b) b->run(Part::forward, stage);
    if (b && last) {
      b->run(Part::loss, stage);
      keep_results(*b);
    }
    stages_->end_test(stage, input.batch);
    if (b && last) metrics_.add(*b);
  }
  if (batch_input_) batch_input_->enqueued(slot);
}

void GpuEvaluation::download_sums(int64_t samples) {
  const Session& session = worker_.session;
  auto& results = *reinterpret_cast<Results*>(results_.data());
  worker_.stream().copy(&results.sums, sums_.data(), sizeof results.sums);
  worker_.stream().copy(&results.state, worker_.context.state, sizeof results.state);
  session.devices.stages_are_processes() ? worker_.wait() : worker_.stream().synchronise();
  check_data(results.state.bad);
  if (!worker_.stages.has_last()) return;
  const cuda::TestSums& found = results.sums;
  add_evaluation(session.model, worker_.buffers.evaluation(worker_.shard),
                 {.loss = found.loss, .weight = found.weight, .correct = found.correct}, samples);
}

Evaluation GpuEvaluation::run(const StepExecutor::BatchesDone& done) {
  const std::vector<uint32_t> order = worker_.session.data.test_order();
  if (worker_.stages.has_last()) clear_evaluation(worker_.buffers, worker_.shard);
  if (prefetch_ != nullptr) {
    if (worker_.gpus.first_of_rank()) prefetch_->begin(order);
    worker_.gpus.rank_barrier();
  }
  if (batch_input_) batch_input_->begin(order, 0);
  worker_.stream().fill(sums_.data(), 0, sums_.bytes());
  const int64_t samples = stages_ ? run_in_stages(order, done) : launch_all(order, done);
  metrics_.finish();
  download_sums(samples);
  worker_.among_hosts([](GpuHostExchange& e) { e.results().gather_evaluation(); });
  return end_evaluation(worker_.session, worker_.buffers, [&] { worker_.gpus.barrier(); });
}

}  // namespace dpt
