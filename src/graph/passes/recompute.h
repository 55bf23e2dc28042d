// Activation checkpointing: the values of a range of layers are not stored for the backward part
// but computed again there, from the inputs of the range (Chen et al., "Training Deep Nets with
// Sublinear Memory Cost", 2016; torch.utils.checkpoint).
#pragma once

#include "graph/graph.h"

namespace dpt {

// Inserts copies of the forward nodes of each range (GraphNode::range) into the backward part,
// before the first gradient that reads their values. The copies give the same bits: dropout is a
// function of the step, and only the forward part updates running statistics. Copies between stages
// are not recomputed. stages: each stage is a range. REQUIRES: differentiated.
void recompute(Graph& graph, bool stages = false);

}  // namespace dpt
