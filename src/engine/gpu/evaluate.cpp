// GpuExecutor: evaluation, and the non-finite check.
#include <algorithm>
#include <bit>
#include <new>

#include "backend/cuda/interface/launch.h"
#include "base/fail.h"
#include "engine/evaluation.h"
#include "engine/gpu/executor.h"
#include "engine/nonfinite_check.h"

namespace dpt {

using cuda::MemoryKind;

// Uploads the entries of all test batches, which are the same in each evaluation. Batches without
// rows of this GPU are left out, unless other GPUs have stages of the model.
void GpuExecutor::prepare_evaluation() {
  const BatchPartitioner& batches = *session_.test_batches;
  const auto steps = static_cast<size_t>(batches.steps());
  const cuda::DeviceBuffer host(*api_, MemoryKind::pinned, steps * sizeof(cuda::StepEntry));
  auto* next = reinterpret_cast<cuda::StepEntry*>(host.data());
  StepRows rows;
  for (size_t i = 0; i < steps; ++i) {
    batches.step(static_cast<int64_t>(i), rows);
    const Rows mine = own(rows.micro[0]).rows;
    if (mine.count() > 0 || stages_) *next++ = {.step = 0, .position = mine.begin, .divisor = 1};
  }
  const auto device = [&](size_t bytes) {
    return cuda::DeviceBuffer(*api_, MemoryKind::device, bytes);
  };
  test_entries_ = device(host.bytes());
  test_entry_ = device(sizeof(cuda::StepEntry));
  test_sums_ = device(sizeof(cuda::TestSums));
  stream_->copy(test_entries_.data(), host.data(), host.bytes());
  stream_->synchronise();
}

// Enqueues the next batch; the GPU itself advances to its entry.
void GpuExecutor::enqueue_test(const StepRows& rows, size_t slot) {
  GpuBinding& b = binding(rows.micro[0], test);
  auto* const entry = reinterpret_cast<cuda::StepEntry*>(test_entry_.data());
  cuda::launch(*stream_,
               cuda::NextTestBatch{.entries = test_entry(0),
                                   .count = session_.test_batches->steps(),
                                   .done = test_sums(),
                                   .entry = entry},
               1);
  begin(&b, rows, 0, entry, true);
  test_batch_input_->enqueue_input(b, 0, slot);
  test_batch_input_->enqueue_target(b, 0, slot);
  for (const Part part : {Part::prologue, Part::forward, Part::loss}) b.run(part);
  keep_results(b);
}

void GpuExecutor::keep_results(const GpuBinding& b) {
  const Graph& graph = b.program().graph;
  const auto result = [&](ValueId v) {
    return v == kNoValue ? nullptr : reinterpret_cast<const double*>(b.view(v).data);
  };
  const bool weighs = session_.divisor == Divisor::targets;
  cuda::launch(*stream_,
               cuda::AddTestBatch{.loss = result(graph.loss),
                                  .weight = weighs ? result(graph.target_weight) : nullptr,
                                  .correct = result(graph.correct),
                                  .done = test_sums()},
               1);
}

cuda::CapturedGraph& GpuExecutor::test_graph(const StepRows& rows, size_t slot, size_t batches) {
  std::vector<int64_t> key = test_key(rows);
  key.insert(key.end(), {static_cast<int64_t>(slot), static_cast<int64_t>(batches)});
  return captured(std::move(key), [&] {
    for (size_t i = 0; i < batches; ++i) enqueue_test(rows, slot);
  });
}

// The key of captured test batches.
std::vector<int64_t> GpuExecutor::test_key(const StepRows& rows) const {
  const ShardRows& mine = own(rows.micro[0]);
  return {mine.rows.count(), mine.first_sample, test};
}

bool GpuExecutor::warm_test(const StepRows& rows) const {
  return session_.spec.graphs && warm_tests_.contains(test_key(rows));
}

// Enqueues `batches` batches with the same key, `first` being the first of them.
void GpuExecutor::evaluate(const StepInput& first, size_t batches) {
  const size_t slot = test_batch_input_->make(first);
  if (warm_test(*first.rows))
    stream_->launch(test_graph(*first.rows, slot, batches));
  else
    for (size_t i = 0; i < batches; ++i) enqueue_test(*first.rows, slot);
  test_batch_input_->enqueued(slot);
  warm_tests_.insert(test_key(*first.rows));
  add_metrics(binding(first.rows->micro[0], test));
}

// For metrics of outputs: waits for the batch just enqueued, and adds it on the host.
void GpuExecutor::add_metrics(const GpuBinding& b) {
  if (session_.metrics.size() == 0) return;
  const Graph& graph = b.program().graph;
  const auto download = [&](const TensorView& from) {
    cuda::DeviceBuffer host(*api_, MemoryKind::pinned, from.desc.bytes());
    stream_->copy(host.data(), from.data, from.desc.bytes());
    return host;
  };
  const TensorView output = b.view(graph.output), target = b.view(graph.target);
  const cuda::DeviceBuffer outputs = download(output), targets = download(target);
  wait();
  session_.metrics.add({output.desc, outputs.data()}, {target.desc, targets.data()},
                       buffers_.metrics(shard_));
}

// Enqueues all test batches of this GPU, several per launch. Returns the number of their samples.
int64_t GpuExecutor::launch_evaluation(std::span<const uint32_t> order, const BatchesDone& done) {
  const BatchPartitioner& batches = *session_.test_batches;
  StepRows rows, first;  // first: the first of the batches that wait for a launch
  StepInput input{.rows = &first, .order = order};
  size_t waiting = 0, most = 1;
  int64_t samples = 0;
  const auto launch_all = [&] {
    while (waiting > 0) {
      const size_t n = std::min(most, std::bit_floor(waiting));
      evaluate(input, n);
      waiting -= n;
    }
  };
  for (int64_t batch = 0; batch < batches.steps(); ++batch) {
    batches.step(batch, rows);
    const ShardRows& mine = own(rows.micro[0]);
    if (mine.rows.count() == 0) continue;
    samples += mine.rows.count();
    const ShardRows* const other = waiting > 0 ? &own(first.micro[0]) : nullptr;
    if (waiting == most || (other && (other->rows.count() != mine.rows.count() ||
                                      other->first_sample != mine.first_sample)))
      launch_all();
    if (done && waiting == 0) done(batch);
    if (waiting++ > 0) continue;
    first = rows;
    input.batch = batch;
    const bool one =
        !warm_test(first) || test_batch_input_->slots() > 1 || session_.metrics.size() > 0;
    most = one ? 1 : LaunchQueue::together(test_graph(first, 0, 1).nodes());
  }
  launch_all();
  if (done) done(batches.steps());
  return samples;
}

// The same on a GPU that has some stages of the model.
int64_t GpuExecutor::run_stage_evaluation(std::span<const uint32_t> order,
                                          const BatchesDone& done) {
  const BatchPartitioner& batches = *session_.test_batches;
  StepRows rows;
  int64_t samples = 0;
  for (int64_t batch = 0; batch < batches.steps(); ++batch) {
    batches.step(batch, rows);
    evaluate_in_stages({.rows = &rows, .order = order, .batch = batch});
    if (done) done(batch + 1);
    samples += own(rows.micro[0]).rows.count();
  }
  stages_->end_evaluation(batches.steps());
  return samples;
}

Evaluation GpuExecutor::evaluate(const BatchesDone& done) {
  const std::vector<uint32_t> order = session_.test_order();
  if (has_stage(last_stage())) clear_evaluation(buffers_, shard_);
  if (test_prefetch_ != nullptr) {
    if (gpus_.first_of_rank()) test_prefetch_->begin(order);
    gpus_.rank_barrier();
  }
  share_buffers();
  if (test_batch_input_) test_batch_input_->begin(order, 0);
  stream_->fill(test_sums_.data(), 0, test_sums_.bytes());
  const int64_t samples =
      stages_ ? run_stage_evaluation(order, done) : launch_evaluation(order, done);
  const cuda::DeviceBuffer back(*api_, MemoryKind::pinned, sizeof(cuda::TestSums));
  const cuda::DeviceBuffer state(*api_, MemoryKind::pinned, sizeof(cuda::StepState));
  stream_->copy(back.data(), test_sums_.data(), back.bytes());
  stream_->copy(state.data(), context_.state, sizeof(cuda::StepState));
  session_.stages_are_processes() ? wait() : stream_->synchronise();
  check_data(reinterpret_cast<const cuda::StepState*>(state.data())->bad);
  const auto& sums = *reinterpret_cast<const cuda::TestSums*>(back.data());
  if (has_stage(last_stage()))
    buffers_.evaluation(shard_) = {
        .loss = sums.loss,
        .weight = session_.divisor == Divisor::targets ? sums.weight : natural_divisor(samples),
        .correct = sums.correct};
  gpus_.barrier();
  const Evaluation out = sum_evaluation(session_, buffers_);
  gpus_.barrier();  // no worker may begin the next evaluation before all have read the results
  return out;
}

// Copies the first replica's running statistics to all GPUs, since PyTorch evaluates with those.
void GpuExecutor::share_buffers() {
  const size_t begin = share_.trained(), end = share_.elements();
  if (session_.topology.replicas() == 1 || session_.layout.trainable == session_.layout.total)
    return;
  if (shard_ == 0) update_.read(begin, end, buffers_.weights());
  gpus_.barrier();
  if (shard_ != 0) update_.write(begin, end, buffers_.weights());
  gpus_.barrier();
}

// With `shard: optimizer`, each GPU has the averages of its own pieces and gets the others'
// weights.
void GpuExecutor::swap_average() {
  gpus_.barrier();
  update_.swap_average();
  share_weights();
  wait();
  gpus_.barrier();
}

void GpuExecutor::finish() {
  gather_weights();
  graphs_.clear();  // their NCCL calls belong to the communicator
  communicator_ = nullptr;
  if (exchange_) exchange_->finish();
  if (stages_) stages_->finish();
  gpus_.barrier();
}

void GpuExecutor::gather() {
  update_.download_states(buffers_);
  gather_weights();
}

void GpuExecutor::gather_weights() {
  update_.download_weights(buffers_);
  gpus_.barrier();
  if (shard_ != 0) same_weights();
  gpus_.barrier();  // all must have compared before the host's weights change or are saved
}

// Checks that this replica ended with the first replica's weights; otherwise a sum has failed.
void GpuExecutor::same_weights() {
  if (!update_.equal(0, share_.trained(), buffers_.weights()))
    fail(Fault::device,
         "after the last step, the weights on GPU {} differ from those on GPU {}, so a sum over "
         "GPUs was wrong; nothing is saved. Set `backend: gloo`, which sums on the CPUs",
         gpus_.worker(), gpus_.device());
}

bool GpuExecutor::finite(const TensorView& v) {
  if (v.desc.bytes() == 0) return true;
  const cuda::DeviceBuffer host(*api_, cuda::MemoryKind::pinned, v.desc.bytes());
  stream_->copy(host.data(), v.data, v.desc.bytes());
  wait();
  return all_finite({v.desc, host.data()});
}

void GpuExecutor::check_finite(const StepInput& input, NonFinite& found) {
  const Graph& graph = session_.graph;
  for (const Micro& micro : input.rows->micro)
    if (const Rows rows = own(micro).rows; has_stage(0))
      check_samples_finite(
          session_.train,
          input.order.subspan(static_cast<size_t>(rows.begin), static_cast<size_t>(rows.count())),
          found);
  for (size_t p = 0; p < graph.parameters.size() && found.parameter < 0 && has_stage(0); ++p) {
    const TensorDesc& d = graph[graph.parameters[p]].desc;
    auto* const w = reinterpret_cast<std::byte*>(buffers_.weights() + session_.layout.offset[p]);
    if (!all_finite({d, w})) found.parameter = static_cast<int64_t>(p);
  }
  const cuda::DeviceBuffer entry(*api_, MemoryKind::device, sizeof(cuda::StepEntry));
  const cuda::DeviceBuffer host(*api_, MemoryKind::pinned, entry.bytes());
  new (host.data()) cuda::StepEntry{.step = input.number,
                                    .position = own(input.rows->micro[0]).rows.begin,
                                    .divisor = natural_divisor(input.rows->samples)};
  stream_->copy(entry.data(), host.data(), entry.bytes());
  const size_t slot = batch_input_ ? batch_input_->make(input, true) : 0;
  for (size_t m = 0; m < input.rows->micro.size(); ++m) {
    GpuBinding* const b = own(input.rows->micro[m]).rows.count() == 0
                              ? nullptr
                              : &binding(input.rows->micro[m], train);
    begin(has_stage(last_stage()) ? b : nullptr, *input.rows, m,
          reinterpret_cast<const cuda::StepEntry*>(entry.data()), true);
    if (b && has_stage(0)) batch_input_->enqueue_input(*b, m, slot);
    for (int stage = 0; stage <= last_stage(); ++stage) {
      if (b && has_stage(stage)) check_stage_finite(*b, stage, m, found);
      if (!stages_) continue;
      stages_->pass_on({.stage = stage, .chunk = static_cast<int>(m), .backward = false}, b);
      wait();
      gpus_.barrier();  // the next stage may read it
    }
  }
}

// Runs a stage's forward pass, waiting for each result to check it.
void GpuExecutor::check_stage_finite(GpuBinding& b, int stage, size_t micro, NonFinite& found) {
  for (size_t i = 0; i < b.instructions(Part::forward); ++i) {
    if (b.stage(Part::forward, i) != stage) continue;
    const auto results = b.run_one(Part::forward, i);
    if (std::ranges::all_of(results, [&](const TensorView& v) { return finite(v); })) continue;
    const auto at = static_cast<int64_t>(b.instruction(Part::forward, i));
    if (found.instruction < 0) found.instruction = static_cast<int64_t>(micro) * kForward + at;
  }
}

NonFiniteReport GpuExecutor::find_non_finite(const StepInput& input) {
  wait();  // later steps may have been launched already
  update_.download_weights(buffers_);
  if (has_stage(0)) buffers_.non_finite(shard_) = {};
  gpus_.barrier();
  check_finite(input, buffers_.non_finite(shard_));
  gpus_.barrier();
  const NonFinite first = first_non_finite(buffers_, session_.topology.shards);
  gpus_.barrier();
  return describe_non_finite(session_, first);
}

}  // namespace dpt
