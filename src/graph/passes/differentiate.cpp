// Reverse-mode differentiation of a graph. Appends the gradient of each node in reverse order, then
// removes the nodes whose results are not used.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/fail.h"
#include "graph/builder.h"

namespace dpt {
namespace {

class Backward {
 public:
  explicit Backward(Graph& graph)
      : graph_(graph), g_(graph), first_node_(graph.nodes.size()), first_value_(count(graph)) {}

  void run() {
    find_wanted();
    // The gradient of the loss itself is the constant 1, so it has no value; loss operators know
    // that.
    for (size_t i = first_node_; i-- > 0;) {
      const GraphNode node = graph_.nodes[i];  // a copy: adding nodes invalidates references
      const bool ends = std::ranges::find(node.out, graph_.loss) != node.out.end();
      if (!ends && !reached(node)) continue;
      if (!wanted(node)) continue;
      add_gradient_of(node, graph_.nodes[i].part == Part::loss ? Part::loss : Part::backward);
    }
    const std::vector<int> homes = graph_.homes();
    for (size_t i = 0; i < graph_.parameters.size(); ++i) {
      const ValueId p = graph_.parameters[i];
      if (!graph_[p].trainable) continue;
      g_.stage(homes[static_cast<size_t>(p)]);
      graph_.gradients[i] = sum_of(p);
      if (graph_.gradients[i] == kNoValue)
        fail(Fault::spec, "the loss does not depend on parameter '{}'; freeze it or use its layer",
             graph_[p].name);
      // Named after the parameter, not after the cast of it that mixed precision inserts.
      graph_.values[static_cast<size_t>(graph_.gradients[i])].name = "d " + graph_[p].name;
    }
    drop_unused();
  }

 private:
  static ValueId count(const Graph& graph) { return static_cast<ValueId>(graph.values.size()); }

  void find_wanted() {
    wanted_ = graph_.trained();
    require(graph_.loss != kNoValue && graph_.output != kNoValue, "a graph to train has a loss");
    if (!wanted_[static_cast<size_t>(graph_.output)])
      fail(Fault::spec, "nothing to train: the model's output depends on no trainable parameter");
  }

  bool wanted(const GraphNode& n) const {
    return std::ranges::any_of(n.in, [&](ValueId v) { return wanted_[static_cast<size_t>(v)]; });
  }

  bool reached(const GraphNode& n) const {
    return std::ranges::any_of(n.out, [&](ValueId v) { return parts_.contains(v); });
  }

  void add_gradient_of(const GraphNode& node, Part part) {
    if (node.op->gradient == nullptr)
      fail(Fault::spec, "operator '{}' has no gradient, so nothing before it can be trained",
           node.op->name);
    g_.enter(node.layer, node.where);
    g_.stage(node.stage);
    std::vector<ValueId> dy;
    for (ValueId v : node.out) dy.push_back(sum_of(v));
    g_.part(part);
    const std::vector<ValueId> dx = node.op->gradient(g_, node, dy);
    for (size_t i = 0; i < node.in.size(); ++i)
      if (dx[i] != kNoValue && wanted_[static_cast<size_t>(node.in[i])])
        parts_[node.in[i]].push_back(dx[i]);
  }

  // The gradient of v. All uses of v have been differentiated by now.
  ValueId sum_of(ValueId v) {
    const auto it = parts_.find(v);
    if (it == parts_.end()) return kNoValue;
    std::vector<ValueId>& parts = it->second;
    if (parts.size() > 1) {
      std::ranges::reverse(parts);  // into the order of the uses; they were visited last to first
      g_.part(v == graph_.output ? Part::loss : Part::backward);
      parts = {g_.apply("add", parts)};
    }
    if (v == graph_.output) graph_.output_gradient = parts[0];
    name(parts[0], v);
    return parts[0];
  }

  // "d lin1.weight". An addition passes its gradient on unchanged; such a gradient keeps its first
  // name.
  void name(ValueId gradient, ValueId of) {
    Value& d = graph_.values[static_cast<size_t>(gradient)];
    if (!d.name.starts_with("d ")) d.name = "d " + graph_[of].name;
  }

  // Removes the added nodes whose results are not used, and renumbers the added values without
  // gaps. Values from before differentiate() keep their ids.
  void drop_unused() {
    std::vector<bool> used(graph_.values.size(), false);
    const auto use = [&](ValueId v) {
      if (v != kNoValue) used[static_cast<size_t>(v)] = true;
    };
    for (ValueId v : graph_.gradients) use(v);
    use(graph_.output_gradient);
    std::vector<bool> drop(graph_.nodes.size());
    for (size_t i = graph_.nodes.size(); i-- > first_node_;) {
      const GraphNode& n = graph_.nodes[i];
      drop[i] =
          std::ranges::none_of(n.out, [&](ValueId v) { return used[static_cast<size_t>(v)]; });
      if (drop[i]) continue;
      for (ValueId v : n.in) use(v);
      for (ValueId v : n.out) use(v);
    }
    renumber(used, drop);
  }

  void renumber(const std::vector<bool>& used, const std::vector<bool>& drop) {
    std::vector<ValueId> to(graph_.values.size());
    ValueId next = first_value_;
    for (ValueId v = 0; v < count(graph_); ++v) {
      const auto i = static_cast<size_t>(v);
      if (v >= first_value_ && !used[i]) continue;
      to[i] = v < first_value_ ? v : next++;
      if (to[i] != v) graph_.values[static_cast<size_t>(to[i])] = std::move(graph_.values[i]);
    }
    graph_.values.resize(static_cast<size_t>(next));
    const auto move = [&](ValueId& v) {
      if (v != kNoValue) v = to[static_cast<size_t>(v)];
    };
    graph_.erase_nodes(drop);
    for (size_t i = first_node_; i < graph_.nodes.size(); ++i) {
      for (ValueId& v : graph_.nodes[i].in) move(v);
      for (ValueId& v : graph_.nodes[i].out) move(v);
    }
    for (ValueId& v : graph_.gradients) move(v);
    move(graph_.output_gradient);
  }

  Graph& graph_;
  GraphBuilder g_;
  size_t first_node_;
  ValueId first_value_;
  std::vector<bool> wanted_;
  // Gradient contributions of each value, one per use
  std::map<ValueId, std::vector<ValueId>> parts_;
};

}  // namespace

void differentiate(Graph& graph) { Backward(graph).run(); }

}  // namespace dpt
