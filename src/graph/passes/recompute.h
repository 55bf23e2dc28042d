// Activation checkpointing: what a range of layers makes is not kept for the backward part but
// computed there again, from the range's inputs (Chen et al., "Training Deep Nets with Sublinear
// Memory Cost", 2016; torch.utils.checkpoint).
#pragma once

#include "graph/graph.h"

namespace dpt {

// Before the first gradient that reads a value of a range (GraphNode::range), the nodes that it is
// made of are put into the backward part once more. They give the same bits: dropout is a function
// of the step, and running statistics move in the forward part alone. Copies between stages are
// kept. stages: all that a stage computes is a range. REQUIRES: differentiated.
void recompute(Graph& graph, bool stages = false);

}  // namespace dpt
