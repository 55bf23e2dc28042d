// Layers on several devices: graph.h, note [stages].
#pragma once

#include "graph/graph.h"

namespace dpt {

// Puts a `copy` wherever a stage reads what an earlier one has made; the model's output then lies
// in the last stage. The copy is run by the later stage, which knows that the earlier one still
// keeps its part of the step; so is its gradient's. REQUIRES: not differentiated, not fused.
void copy_between_stages(Graph& graph);

}  // namespace dpt
