// Copies between pipeline stages (graph.h, Note [stages]).
#pragma once

#include "graph/graph.h"

namespace dpt {

// Inserts a `copy` wherever a stage reads a value of an earlier stage, and copies the model's
// output to the last stage. The later stage runs the copy and the copy of its gradient: at both
// times the earlier stage keeps its activations, so it need not be waited for. REQUIRES: not
// differentiated, not fused.
void copy_between_stages(Graph& graph);

}  // namespace dpt
