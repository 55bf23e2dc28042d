#include "graph/layouts.h"

#include <map>
#include <utility>

#include <fmt/format.h>

#include "graph/attrs.h"
#include "graph/operator.h"

namespace dpt {
namespace {

bool is_image(const TensorDesc& d) { return d.shape.rank() == 3 || d.shape.rank() == 4; }

class LayoutChoice {
 public:
  explicit LayoutChoice(Graph& graph) : graph_(graph), trained_(graph.trained()) {}

  void run() {
    std::vector<GraphNode> nodes = std::exchange(graph_.nodes, {});
    const std::vector<Part> parts = std::exchange(graph_.part, {});
    for (const GraphNode& n : nodes)
      if (n.op->name == "cast" || n.op->name == "round_to") cast_from_[n.out[0]] = n.in[0];
    for (GraphNode& n : nodes)
      if (n.op->weight >= 0) {
        ValueId weight = at(n, static_cast<size_t>(n.op->weight));
        const Layout layout = weight_layout(n);
        set(weight, layout);
        for (; cast_from_.contains(weight); set(weight, layout)) weight = cast_from_[weight];
      }
    for (size_t i = 0; i < nodes.size(); ++i) {
      part_ = parts[i];
      lay_out(nodes[i]);
      graph_.nodes.push_back(std::move(nodes[i]));
      graph_.part.push_back(part_);
    }
  }

 private:
  // Value number `place` of a node: inputs first, then results.
  static ValueId& at(GraphNode& n, size_t place) {
    return place < n.in.size() ? n.in[place] : n.out[place - n.in.size()];
  }
  Layout& layout(ValueId v) { return graph_.values[static_cast<size_t>(v)].desc.layout; }

  // Where another layout is the same order the value keeps the plain one: fewer nodes, wider use.
  void set(ValueId v, Layout wanted) {
    layout(v) = same_order(graph_[v].desc.shape, wanted, Layout::plain) ? Layout::plain : wanted;
  }

  // Where a linear layer's input needs no gradient, rows of x and of the transposed weight are
  // multiplied in all its products, and zeros of x, often half of an image, are left out.
  Layout weight_layout(GraphNode& n) {
    if (n.op->layouts == Layouts::images) return Layout::transposed;
    constexpr int64_t kPays = 64;
    const Shape& w = graph_[at(n, static_cast<size_t>(n.op->weight))].desc.shape;
    const ValueId x = n.in[n.op->name == "linear" ? 0 : 1];  // else its weight gradient
    const bool pays = w[0] >= kPays && w[1] >= kPays && !trained_[static_cast<size_t>(x)];
    return pays ? Layout::transposed : Layout::plain;
  }

  void lay_out(GraphNode& n) {
    Layout wanted = Layout::plain;
    if (n.op->layouts == Layouts::images) wanted = Layout::channels_last;
    if (n.op->layouts == Layouts::any)
      for (ValueId v : n.in)
        if (layout(v) != Layout::plain) wanted = layout(v);
    const auto own = [&](size_t place) { return std::cmp_equal(place, n.op->weight); };
    const auto of = [&](ValueId v) {
      return n.op->layouts == Layouts::images && !is_image(graph_[v].desc) ? Layout::plain : wanted;
    };
    for (size_t i = 0; i < n.in.size(); ++i)
      if (!own(i)) n.in[i] = in_layout(n.in[i], of(n.in[i]), n);
    for (size_t i = 0; i < n.out.size(); ++i)
      if (!own(n.in.size() + i)) set(n.out[i], of(n.out[i]));
  }

  // v itself, or a reordered copy, which is made once.
  ValueId in_layout(ValueId v, Layout wanted, const GraphNode& user) {
    const TensorDesc d = graph_[v].desc;
    if (same_order(d.shape, d.layout, wanted)) return v;
    const auto [made, first] = copies_.try_emplace({v, wanted}, kNoValue);
    if (first) {
      made->second = static_cast<ValueId>(graph_.values.size());
      graph_.values.push_back({.name = fmt::format("{}.{}", graph_[v].name, name_of(wanted)),
                               .desc = {d.dtype, d.shape, wanted}});
      graph_.nodes.push_back(
          {&op("reorder"), Reorder{wanted}, {v}, {made->second}, user.layer, user.where});
      graph_.part.push_back(part_);
    }
    return made->second;
  }

  Graph& graph_;
  std::vector<bool> trained_;
  Part part_ = Part::forward;
  std::map<std::pair<ValueId, Layout>, ValueId> copies_;
  std::map<ValueId, ValueId> cast_from_;  // a weight's layout is that of the parameter
};

}  // namespace

void choose_layouts(Graph& graph) { LayoutChoice(graph).run(); }

}  // namespace dpt
