// Chooses the device of each unit of a pipeline's model (layers/model.h).
#pragma once

#include <functional>
#include <vector>

#include "graph/graph.h"
#include "parallel/mode.h"
#include "spec/spec.h"

namespace dpt {

// Stages begin at the layers that the spec names, or are balanced by FLOPs or memory. graph_of must
// return the training graph for a placement, without copies between stages. Errors are reported to
// `d`; the result is valid only if d.ok() afterwards.
std::vector<int> place_units(
    const Spec& spec, const Pipeline& pipeline, int devices,
    const std::function<Graph(const std::vector<int>& placement)>& graph_of, Diagnostics& d);

}  // namespace dpt
