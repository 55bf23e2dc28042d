#include "session/measure_layout.h"

#include "backend/cpu/simd/simd.h"

namespace dpt {
namespace {

size_t chunks_of(size_t elements) { return (elements + kSquareChunk - 1) / kSquareChunk; }

}  // namespace

MeasureLayout::MeasureLayout(const Spec& spec, const Devices& devices, const CompiledModel& model) {
  if (spec.log.noise_scale) {
    rows_ = static_cast<size_t>(devices.topology.shards) + 1;
    chunks_ = chunks_of(model.layout.stored);
  }
  if (!spec.log.grad_norms) return;
  for (size_t p = 0; p < model.graph.parameters.size(); ++p) {
    if (model.graph.gradients[p] == kNoValue) continue;  // frozen
    const auto elements =
        static_cast<size_t>(model.graph[model.graph.parameters[p]].desc.shape.elements());
    parameters_.push_back({.parameter = p,
                           .offset = model.layout.offset[p],
                           .elements = elements,
                           .first = rows_ * chunks_ + parameter_chunks_,
                           .chunks = chunks_of(elements)});
    parameter_chunks_ += parameters_.back().chunks;
  }
}

}  // namespace dpt
