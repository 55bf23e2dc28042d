// The device executor's other passes: over the test set, and in search of a number that is not
// finite.
#include <algorithm>
#include <new>
#include <numeric>

#include "train/device_executor.h"
#include "train/trouble.h"

namespace dpt {

using cuda::MemoryKind;

namespace {

enum Result { loss, weight, correct, results };  // of a batch, f64 each

}  // namespace

// Its batches are the same each time.
void DeviceExecutor::prepare_evaluation() {
  const StepCutter& batches = *session_.test_batches;
  const auto steps = static_cast<size_t>(batches.steps());
  const cuda::Memory host(*api_, MemoryKind::pinned, steps * sizeof(cuda::StepEntry));
  auto* const entries = reinterpret_cast<cuda::StepEntry*>(host.data());
  StepRows rows;
  for (size_t i = 0; i < steps; ++i) {
    batches.step(static_cast<int64_t>(i), rows);
    entries[i] = {.step = 0, .position = rows.micro[0][0].rows.begin, .divisor = 1};
  }
  test_entries_ = cuda::Memory(*api_, MemoryKind::device, host.bytes());
  test_results_ = cuda::Memory(*api_, MemoryKind::device, steps * results * sizeof(double));
  stream_->copy(test_entries_.data(), host.data(), host.bytes());
  stream_->fill(test_results_.data(), 0, test_results_.bytes());
  stream_->synchronise();
}

// Enqueues a batch.
void DeviceExecutor::evaluate(const StepInput& input) {
  const StepRows& rows = *input.rows;
  const auto number = static_cast<size_t>(input.batch);
  DeviceBinding& b = binding(rows.micro[0], test);
  const Graph& graph = b.program().graph;
  const size_t place = test_feed_->make(input);
  begin(b, rows, 0, reinterpret_cast<const cuda::StepEntry*>(test_entries_.data()) + number, true);
  test_feed_->enqueue_input(b, 0, place);
  test_feed_->enqueue_target(b, 0, place);
  for (const Part part : {Part::prologue, Part::forward, Part::loss}) b.run(part);
  test_feed_->enqueued(place);
  const auto keep = [&](Result r, ValueId v) {
    stream_->copy(reinterpret_cast<double*>(test_results_.data()) + number * results + r,
                  b.view(v).data, sizeof(double));
  };
  keep(loss, graph.loss);
  if (session_.divisor == Divisor::targets) keep(weight, graph.target_weight);
  if (graph.correct != kNoValue) keep(correct, graph.correct);
}

Evaluation DeviceExecutor::evaluate() {
  const StepCutter& batches = *session_.test_batches;
  std::vector<uint32_t> order(static_cast<size_t>(session_.test->size()));
  std::iota(order.begin(), order.end(), 0U);
  if (test_ahead_ != nullptr) test_ahead_->begin(order);
  test_feed_->begin(order);
  double natural = 0;
  StepRows rows;
  for (int64_t batch = 0; batch < batches.steps(); ++batch) {
    batches.step(batch, rows);
    evaluate({.rows = &rows, .order = order, .batch = batch});
    natural += natural_divisor(rows.samples);
  }
  const cuda::Memory back(*api_, MemoryKind::pinned, test_results_.bytes());
  const cuda::Memory state(*api_, MemoryKind::pinned, sizeof(cuda::StepState));
  stream_->copy(back.data(), test_results_.data(), back.bytes());
  stream_->copy(state.data(), context_.state, sizeof(cuda::StepState));
  stream_->synchronise();
  check_data(reinterpret_cast<const cuda::StepState*>(state.data())->bad);
  const auto total = [&](Result r) {
    double sum = 0;
    for (int64_t b = 0; b < batches.steps(); ++b)
      sum += reinterpret_cast<const double*>(back.data())[b * results + r];
    return sum;
  };
  Evaluation out{.loss = total(loss)};
  if (session_.divisor != Divisor::one)
    out.loss /= session_.divisor == Divisor::targets ? total(weight) : natural;
  const bool classes = std::ranges::any_of(session_.test_programs, [](const auto& sized) {
    return sized.second.graph.correct != kNoValue;
  });
  if (classes)
    out.accuracy =
        total(correct) / static_cast<double>(session_.test->size() - session_.test->ignored);
  return out;
}

bool DeviceExecutor::finite(const TensorView& v) {
  if (v.desc.bytes() == 0) return true;
  const cuda::Memory host(*api_, cuda::MemoryKind::pinned, v.desc.bytes());
  stream_->copy(host.data(), v.data, v.desc.bytes());
  stream_->synchronise();
  return all_finite({v.desc, host.data()});
}

Finding DeviceExecutor::find_trouble(const StepInput& input) {
  finish();
  Trouble found;
  const Graph& graph = session_.graph;
  for (size_t p = 0; p < graph.parameters.size() && found.parameter < 0; ++p) {
    const TensorDesc& d = graph[graph.parameters[p]].desc;
    auto* const w = reinterpret_cast<std::byte*>(buffers_.weights() + session_.layout.offset[p]);
    if (!all_finite({d, w})) found.parameter = static_cast<int64_t>(p);
  }
  const cuda::Memory entry(*api_, MemoryKind::device, sizeof(cuda::StepEntry));
  const cuda::Memory host(*api_, MemoryKind::pinned, entry.bytes());
  new (host.data()) cuda::StepEntry{.step = input.number,
                                    .position = input.rows->micro[0][0].rows.begin,
                                    .divisor = natural_divisor(input.rows->samples)};
  stream_->copy(entry.data(), host.data(), entry.bytes());
  const size_t place = feed_->make(input, true);
  for (size_t m = 0; m < input.rows->micro.size() && found.instruction < 0; ++m) {
    DeviceBinding& b = binding(input.rows->micro[m], train);
    begin(b, *input.rows, m, reinterpret_cast<const cuda::StepEntry*>(entry.data()), true);
    feed_->enqueue_input(b, m, place);
    for (size_t i = 0; i < b.instructions(Part::forward) && found.instruction < 0; ++i) {
      const auto results = b.run(Part::forward, i);
      if (!std::ranges::all_of(results, [&](const TensorView& v) { return finite(v); }))
        found.instruction = static_cast<int64_t>(i);
    }
  }
  return describe_trouble(session_, found);
}

}  // namespace dpt
