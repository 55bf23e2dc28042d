#include "engine/nonfinite_search.h"

namespace dpt {

void NonFiniteSearch::record(int64_t shard, size_t micro, int64_t instruction) const {
  NonFinite& found = buffers_.non_finite(static_cast<int>(shard));
  if (found.instruction < 0)
    found.instruction = static_cast<int64_t>(micro) * kForward + instruction;
}

// Samples and parameters. Other devices of the replica have the same ones.
void NonFiniteSearch::check_stored(const StepInput& input) const {
  const Graph& graph = session_.model.graph;
  for (const Rows shards : own_) {
    NonFinite& found = buffers_.non_finite(static_cast<int>(shards.begin));
    for (const MicroBatch& micro : input.rows->micro)
      check_samples_finite(session_.data.train, samples_of(micro, shards, input.order).rows(),
                           found);
    for (size_t p = 0; p < graph.parameters.size() && found.parameter < 0; ++p) {
      float* const values = buffers_.weights() + session_.model.layout.offset[p];
      const TensorDesc desc{DType::f32, graph[graph.parameters[p]].desc.shape};
      if (!all_finite({desc, reinterpret_cast<std::byte*>(values)}))
        found.parameter = static_cast<int64_t>(p);
    }
  }
}

NonFiniteReport NonFiniteSearch::run(const StepInput& input) {
  if (stages_.has_first())
    for (const Rows shards : own_)
      for (int64_t s = shards.begin; s < shards.end; ++s)
        buffers_.non_finite(static_cast<int>(s)) = {};
  barrier();
  if (stages_.has_first()) check_stored(input);
  for (size_t m = 0; m < input.rows->micro.size(); ++m) {
    load(input, m);
    for (int stage = 0; stage <= stages_.last(); ++stage) {
      if (stages_.has(stage)) run_stage(input, m, stage);
      pass_on(input, m, stage);
    }
  }
  barrier();
  gather();
  const NonFinite first = first_non_finite(buffers_, session_.devices.topology.shards);
  barrier();  // no worker may clear its findings before all have read them
  return describe_non_finite(session_.settings, session_.model, first);
}

}  // namespace dpt
