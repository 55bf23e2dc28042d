// The number of a dropout layer in its model; each layer draws its own mask.
#pragma once

#include <algorithm>
#include <cstdint>

#include "graph/builder.h"

namespace dpt::layers {

// The number of the layer that is built next: how many random operators the graph already has.
inline uint64_t dropout_number(GraphBuilder& g) {
  return static_cast<uint64_t>(std::ranges::count_if(
      g.graph().nodes, [](const GraphNode& n) { return n.op->is(Trait::random); }));
}

}  // namespace dpt::layers
