// Lets kernels that compute in f32 run operators on halves.
#pragma once

#include <span>

#include "graph/graph.h"
#include "graph/kernel.h"

namespace dpt {

// Which operators store halves as 16 bits, of those for which the list has a kernel that takes
// them: all, or those that multiply, and of the others those that read a value that is stored so.
// The latter is for lists whose other kernels take both types.
enum class StoredHalves { wherever_taken, between_products };

// An operator on halves is defined as the operator in f32 on the same numbers, with each result
// rounded once. If no kernel of the list accepts halves, the operator reads and writes f32 whose
// values are rounded to the half (GraphNode::rounds, or a `round_to` node for values that no node
// computes), and GraphNode::rounded_inputs tells its kernel if all inputs but statistics, the f32
// results of nodes beside their first, hold numbers of that half. This gives the numbers of
// PyTorch's kernels without conversions to 16 bits and back. Otherwise values are stored in 16
// bits. The choice depends on operators, not on shapes.
void widen_halves(Graph& graph, std::span<const KernelType> kernels,
                  StoredHalves stored = StoredHalves::wherever_taken);

}  // namespace dpt
