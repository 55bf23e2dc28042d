// The device executor's other passes: over the test set, and in search of a number that is not
// finite.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "train/device_executor.h"
#include "train/trouble.h"

namespace dpt {

Evaluation DeviceExecutor::evaluate() {
  const StepCutter& batches = *session_.test_batches;
  std::vector<uint32_t> order(static_cast<size_t>(session_.test->size()));
  std::iota(order.begin(), order.end(), 0U);
  if (samples_.test != nullptr) samples_.test->begin(order);
  double loss = 0, weight = 0, correct = 0;
  bool classes = false;
  StepRows rows;
  for (int64_t batch = 0; batch < batches.steps(); ++batch) {
    batches.step(batch, rows);
    const StepInput input{.rows = &rows, .order = order, .batch = batch};
    feed(*session_.test_feeder, rows.micro[0], 0, input, samples_.test);
    fill_host(input, 1);
    DeviceBinding& b = binding(rows.micro[0], test);
    const Graph& graph = b.program().graph;
    stream_->copy(step_.data(), host_.data(), sizeof(DeviceStep));
    enqueue_feed(b, 0);
    for (const Part part : {Part::prologue, Part::forward, Part::loss}) b.run(part);
    loss += read_double(b, graph.loss);
    weight += session_.divisor == Divisor::targets ? read_double(b, graph.target_weight)
                                                   : natural_divisor(rows.samples);
    if (graph.correct != kNoValue) correct += read_double(b, graph.correct);
    classes = classes || graph.correct != kNoValue;
    stream_->copy(back_.data(), context_.state, sizeof(cuda::StepState));
    stream_->synchronise();
    check_data();
  }
  Evaluation out{.loss = session_.divisor == Divisor::one ? loss : loss / weight};
  if (classes)
    out.accuracy = correct / static_cast<double>(session_.test->size() - session_.test->ignored);
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
  for (size_t m = 0; m < input.rows->micro.size() && found.instruction < 0; ++m) {
    DeviceBinding& b = binding(input.rows->micro[m], train);
    stream_->copy(step_.data(), host_.data(), sizeof(DeviceStep));
    enqueue_feed(b, m);
    for (size_t i = 0; i < b.instructions(Part::forward) && found.instruction < 0; ++i) {
      const auto results = b.run(Part::forward, i);
      if (!std::ranges::all_of(results, [&](const TensorView& v) { return finite(v); }))
        found.instruction = static_cast<int64_t>(i);
    }
  }
  return describe_trouble(session_, found);
}

}  // namespace dpt
