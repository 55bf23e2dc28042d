#include "engine/gpu/nonfinite_search.h"

#include <algorithm>
#include <new>

#include "engine/step_numbers.h"

namespace dpt {

using cuda::MemoryKind;

GpuNonFiniteSearch::GpuNonFiniteSearch(GpuWorker& worker, const GpuBindingTable& bindings,
                                       BatchInput* batch_input, GpuStages* stages,
                                       const StepInput& input)
    : NonFiniteSearch(worker.session, worker.buffers, worker.stages,
                      {{worker.shard, worker.shard + 1}}),
      worker_(worker),
      bindings_(bindings),
      batch_input_(batch_input),
      gpu_stages_(stages),
      entry_(worker.api(), MemoryKind::device, sizeof(cuda::StepEntry)) {
  const cuda::DeviceBuffer host(worker.api(), MemoryKind::pinned, entry_.bytes());
  new (host.data())
      cuda::StepEntry{.step = input.number,
                      .position = worker.own(input.rows->micro[0]).rows.begin,
                      .divisor = natural_divisor(worker.session.model, input.rows->samples)};
  worker.stream().copy(entry_.data(), host.data(), host.bytes());
  worker.wait();  // the host's memory is freed here
  if (batch_input_) slot_ = batch_input_->make(input, true);
}

void GpuNonFiniteSearch::load(const StepInput& input, size_t micro) {
  GpuBinding* const b = binding(input, micro);
  begin_batch(worker_, stages_.has_last() ? b : nullptr, *input.rows, micro,
              reinterpret_cast<const cuda::StepEntry*>(entry_.data()), true);
  if (b && stages_.has_first()) batch_input_->enqueue_input(*b, micro, slot_);
}

// Waits for each result to check it.
void GpuNonFiniteSearch::run_stage(const StepInput& input, size_t micro, int stage) {
  GpuBinding* const b = binding(input, micro);
  if (!b) return;
  for (size_t i = 0; i < b->instructions(Part::forward); ++i) {
    if (b->stage(Part::forward, i) != stage) continue;
    const auto results = b->run_one(Part::forward, i);
    if (!std::ranges::all_of(results, [&](const TensorView& v) { return finite(v); }))
      record(worker_.shard, micro, static_cast<int64_t>(b->instruction(Part::forward, i)));
  }
}

void GpuNonFiniteSearch::pass_on(const StepInput& input, size_t micro, int stage) {
  if (!gpu_stages_) return;
  gpu_stages_->pass_on({.stage = stage, .chunk = static_cast<int>(micro), .backward = false},
                       binding(input, micro));
  worker_.wait();
  barrier();
}

bool GpuNonFiniteSearch::finite(const TensorView& v) {
  if (v.desc.bytes() == 0) return true;
  const cuda::DeviceBuffer host(worker_.api(), MemoryKind::pinned, v.desc.bytes());
  worker_.stream().copy(host.data(), v.data, v.desc.bytes());
  worker_.wait();
  return all_finite({v.desc, host.data()});
}

}  // namespace dpt
