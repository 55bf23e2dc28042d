// The order of a value's elements in PyTorch's memory. dptrain stores values in other orders, but
// PyTorch draws dropout masks in its own (`random: torch`).
#pragma once

#include <vector>

#include "graph/graph.h"

namespace dpt {

// The dimensions of v, outermost first, by PyTorch's strides: {1, 0, 2} if [N, T, E] is a
// transposed [T, N, E]. REQUIRES: a graph as built by layers, before fusion.
std::vector<int> torch_order(const Graph& graph, ValueId v);

}  // namespace dpt
