// Halves for kernels that compute in f32.
#pragma once

#include <span>

#include "graph/graph.h"
#include "graph/kernel.h"

namespace dpt {

// An operator on halves is the operator in f32 on the same numbers, with results rounded once.
// Where no kernel of the list takes halves, the operator gets and makes f32, which is rounded to
// numbers of a half (GraphNode::rounds, or `round_to` of what no operator made): the same numbers
// that torch's kernels have, without a conversion to 16 bits and back. Where one takes them, they
// lie in memory as 16 bits. The choice depends on operators and not on shapes.
void widen_halves(Graph& graph, std::span<const KernelType> kernels);

}  // namespace dpt
