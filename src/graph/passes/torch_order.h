// How torch orders the elements of a value in memory. dptrain stores values in orders of its own;
// but torch draws dropout masks in the order of its memory (`random: torch`).
#pragma once

#include <vector>

#include "graph/graph.h"

namespace dpt {

// The extents of `v`, outermost first, as torch's strides order them: {1, 0, 2} where [N, T, E] is
// a transposed [T, N, E]. REQUIRES: layers made the graph, and nothing was fused in it.
std::vector<int> torch_order(const Graph& graph, ValueId v);

}  // namespace dpt
