#include "session/measure_layout.h"

#include "backend/cpu/simd/simd.h"

namespace dpt {
namespace {

size_t chunks_of(size_t elements) { return (elements + kSquareChunk - 1) / kSquareChunk; }

}  // namespace

MeasureLayout::MeasureLayout(const Session& s) {
  if (s.settings.spec.log.noise_scale) {
    rows_ = static_cast<size_t>(s.devices.topology.shards) + 1;
    chunks_ = chunks_of(s.model.layout.stored);
  }
  if (!s.settings.spec.log.grad_norms) return;
  for (size_t p = 0; p < s.model.graph.parameters.size(); ++p) {
    if (s.model.graph.gradients[p] == kNoValue) continue;  // frozen
    const auto elements =
        static_cast<size_t>(s.model.graph[s.model.graph.parameters[p]].desc.shape.elements());
    parameters_.push_back({.parameter = p,
                           .offset = s.model.layout.offset[p],
                           .elements = elements,
                           .first = rows_ * chunks_ + parameter_chunks_,
                           .chunks = chunks_of(elements)});
    parameter_chunks_ += parameters_.back().chunks;
  }
}

}  // namespace dpt
