// What passes over a graph share that put nodes between those that are there.
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

  // Takes the nodes out of the graph and calls f for each in turn, which pushes what takes its
  // place.
  template <class F>
  void each_node(F f) {
    std::vector<GraphNode> nodes = std::exchange(graph_.nodes, {});
    const std::vector<Part> parts = std::exchange(graph_.part, {});
    for (size_t i = 0; i < nodes.size(); ++i) {
      part_ = parts[i];
      f(nodes[i]);
    }
  }

  ValueId add(Value value) {
    graph_.values.push_back(std::move(value));
    return static_cast<ValueId>(graph_.values.size()) - 1;
  }

  void push(GraphNode node) {
    for (ValueId v : node.out) home_[v] = home_of(node);
    graph_.nodes.push_back(std::move(node));
    graph_.part.push_back(part_);
  }

  // y = name(x), where x lies, for what the layer of `user` wants.
  void insert(std::string_view name, std::any attrs, ValueId x, ValueId y, const GraphNode& user) {
    const auto home = home_.find(x);
    const int stage = home == home_.end() ? user.stage : home->second;
    push({&op(name),
          std::move(attrs),
          {x},
          {y},
          user.layer,
          user.where,
          stage,
          part_ == Part::forward ? user.range : 0});
  }

  Graph& graph_;
  Part part_ = Part::forward;  // of what is pushed

 private:
  std::map<ValueId, int> home_;  // of what nodes have made so far
};

}  // namespace dpt
