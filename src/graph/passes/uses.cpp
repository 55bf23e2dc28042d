#include "graph/passes/uses.h"

namespace dpt {

Uses::Uses(const Graph& graph) : uses_(graph.values.size()) {
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    for (ValueId v : graph.nodes[i].in)
      if (v != kNoValue) uses_[static_cast<size_t>(v)].readers.push_back(i);
    for (ValueId v : graph.nodes[i].out) uses_[static_cast<size_t>(v)].maker = i;
  }
  const auto use = [&](ValueId v) {
    if (v != kNoValue) ++uses_[static_cast<size_t>(v)].others;
  };
  for (ValueId v : {graph.output, graph.output_gradient, graph.loss}) use(v);
  for (ValueId v : graph.gradients) use(v);
}

}  // namespace dpt
