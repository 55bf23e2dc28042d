#include "engine/cpu/batch_input.h"

#include <cstring>

namespace dpt {

void CpuBatchInput::load(Binding& b, int group, const StepInput& input, size_t micro, bool again) {
  set_context(b, group, input, micro);
  if (worker_.stages.has_first()) inputs_timed(b, group, input, micro, again);
  if (worker_.stages.has_last()) targets(b, group, input, micro, worker_.stages.has_first());
}

void CpuBatchInput::set_context(Binding& b, int group, const StepInput& input, size_t micro) const {
  const Session& session = worker_.session;
  const MicroBatch& rows = input.rows->micro[micro];
  const auto first = static_cast<size_t>(worker_.shards(group).begin);
  b.context = {.seed = static_cast<uint64_t>(session.settings.spec.seed),
               .step = input.number,
               .first_sample = rows[first].first_sample,
               .last_chunk = session.batches.last_chunk(*input.rows, micro)};
  const auto summed = static_cast<size_t>(worker_.summed_shards.begin);
  b.first = rows[first].first_sample == rows[summed].first_sample;
}

void CpuBatchInput::inputs_timed(Binding& b, int group, const StepInput& input, size_t micro,
                                 bool again) {
  worker_.clocks.wait(WaitClock::data, [&] { inputs(b, group, input, micro, again); });
}

void CpuBatchInput::inputs(Binding& b, int group, const StepInput& input, size_t micro,
                           bool again) {
  const BatchLease lease(again ? nullptr : prefetch_, input.batch, static_cast<int>(micro),
                         worker_.shards(group), worker_.team);
  const auto rows = samples(group, input, micro);
  if (loader_.input().dtype == DType::i32)
    loader_.inputs(rows, reinterpret_cast<int32_t*>(b.input()));
  else
    loader_.inputs(rows, reinterpret_cast<float*>(b.input()),
                   {static_cast<uint64_t>(worker_.session.settings.spec.seed), input.epoch},
                   lease.bytes());
}

void CpuBatchInput::targets(Binding& b, int group, const StepInput& input, size_t micro,
                            bool has_inputs) const {
  const auto rows = samples(group, input, micro);
  const AugmentSeed seed{static_cast<uint64_t>(worker_.session.settings.spec.seed), input.epoch};
  if (loader_.target_is_input() && has_inputs)
    std::memcpy(b.target(), b.input(), rows.size() * loader_.input().bytes());
  else if (loader_.target().dtype == DType::i32)
    loader_.targets(rows, reinterpret_cast<int32_t*>(b.target()), seed);
  else
    loader_.targets(rows, reinterpret_cast<float*>(b.target()), seed);
}

}  // namespace dpt
