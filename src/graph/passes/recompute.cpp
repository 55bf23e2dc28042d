#include "graph/passes/recompute.h"

#include <map>

#include "graph/passes/rewriter.h"

namespace dpt {
namespace {

class Recomputation : Rewriter {
 public:
  explicit Recomputation(Graph& graph) : Rewriter(graph) {}

  void run() {
    for (size_t i = 0; i < graph_.nodes.size(); ++i)
      if (const GraphNode& n = graph_.nodes[i]; n.range > 0 && n.part == Part::forward) {
        for (ValueId v : n.out) maker_[v] = forward_.size();
        forward_.push_back(n);
      }
    if (forward_.empty()) return;
    each_node([&](GraphNode& n) {
      if (part_ == Part::backward)
        for (ValueId& v : n.in) v = again(v);
      push(std::move(n));
    });
  }

 private:
  // The value that the backward part reads instead of v.
  ValueId again(ValueId v) {
    const auto maker = maker_.find(v);
    if (maker == maker_.end()) return v;
    if (const auto made = made_.find(v); made != made_.end()) return made->second;
    GraphNode n = forward_[maker->second];
    const int range = n.range;
    for (ValueId& in : n.in)
      if (const auto it = maker_.find(in);
          it != maker_.end() && forward_[it->second].range == range)
        in = again(in);
    for (ValueId& out : n.out) {
      const ValueId first = out;
      out = add({.name = graph_[first].name + " again", .desc = graph_[first].desc});
      made_[first] = out;
    }
    push(std::move(n));
    return made_[v];
  }

  std::vector<GraphNode> forward_;   // forward nodes in ranges
  std::map<ValueId, size_t> maker_;  // index in forward_ of the node that computes a value
  // Recomputed values, by the original value.
  std::map<ValueId, ValueId> made_;
};

}  // namespace

void recompute(Graph& graph, bool stages) {
  if (stages)
    for (size_t i = 0; i < graph.nodes.size(); ++i)
      if (GraphNode& n = graph.nodes[i]; n.part == Part::forward)
        n.range = is_stage_copy(n) ? 0 : n.stage + 1;
  Recomputation(graph).run();
}

}  // namespace dpt
