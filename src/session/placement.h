// Which device of a pipeline each unit of the model (layers/model.h) is put on.
#pragma once

#include <functional>
#include <vector>

#include "graph/graph.h"
#include "parallel/mode.h"
#include "spec/spec.h"

namespace dpt {

// At the layers that the spec names, or so that stages have about the same work or memory.
// graph_of: the graph that trains with that placement, without copies. Complaints go to `d`; of use
// only where it is still ok.
std::vector<int> place_units(
    const Spec& spec, const Pipeline& pipeline, int devices,
    const std::function<Graph(const std::vector<int>& placement)>& graph_of, Diagnostics& d);

}  // namespace dpt
