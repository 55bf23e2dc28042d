// Base class of passes that insert nodes between the nodes of a graph.
#pragma once

#include <any>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/operator.h"

namespace dpt {

class Rewriter {
 protected:
  explicit Rewriter(Graph& graph) : graph_(graph) {}

  // Takes all nodes out of the graph and calls f for each in order; f pushes its replacement.
  template <class F>
  void each_node(F f) {
    std::vector<GraphNode> nodes = std::exchange(graph_.nodes, {});
    graph_.nodes.reserve(nodes.size());
    for (GraphNode& n : nodes) {
      part_ = n.part;
      f(n);
    }
  }

  ValueId add(Value value) {
    graph_.values.push_back(std::move(value));
    return static_cast<ValueId>(graph_.values.size()) - 1;
  }

  void push(GraphNode node) {
    for (ValueId v : node.out) home_[v] = home_of(node);
    node.part = part_;
    graph_.nodes.push_back(std::move(node));
  }

  // Pushes y = name(x), in the stage where x lies, on behalf of the layer of `user`.
  void insert(std::string_view name, std::any attrs, ValueId x, ValueId y, const GraphNode& user) {
    const auto home = home_.find(x);
    const int stage = home == home_.end() ? user.stage : home->second;
    push({.op = &op(name),
          .attrs = std::move(attrs),
          .in = {x},
          .out = {y},
          .layer = user.layer,
          .where = user.where,
          .stage = stage,
          .range = part_ == Part::forward ? user.range : 0});
  }

  Graph& graph_;
  Part part_ = Part::forward;  // part of the nodes that are pushed

 private:
  std::map<ValueId, int> home_;  // stages of the results pushed so far
};

}  // namespace dpt
