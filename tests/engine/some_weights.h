// Weights that do not depend on how a device stores its parameters, for tests that compare devices
// or compute the same by hand.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "base/tensor.h"
#include "session/buffers.h"
#include "session/session.h"

namespace dpt {

// Number i of the model's parameters, in PyTorch's order and layout: between -0.5 and 0.5.
inline float some_weight(size_t i) { return 0.5F * std::sin(static_cast<float>(1 + 3 * i)); }

// Writes these to the buffers.
inline void set_some_weights(const Session& session, const Buffers& buffers) {
  const Graph& graph = session.model.graph;
  size_t next = 0;
  for (size_t p = 0; p < graph.parameters.size(); ++p) {
    const TensorDesc& desc = graph[graph.parameters[p]].desc;
    std::vector<float> values(static_cast<size_t>(desc.shape.elements()));
    for (float& v : values) v = some_weight(next++);
    copy_layout(desc.shape, sizeof(float), Layout::plain,
                reinterpret_cast<const std::byte*>(values.data()), desc.layout,
                reinterpret_cast<std::byte*>(buffers.weights() + session.model.layout.offset[p]));
  }
}

// Sets all values of parameter `p`.
inline void set_parameter(const Session& session, const Buffers& buffers, size_t p, float value) {
  const Graph& graph = session.model.graph;
  std::fill_n(buffers.weights() + session.model.layout.offset[p],
              graph[graph.parameters[p]].desc.shape.elements(), value);
}

}  // namespace dpt
