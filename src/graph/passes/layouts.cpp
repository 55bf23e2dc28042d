#include "graph/passes/layouts.h"

#include <map>
#include <utility>

#include <fmt/format.h>

#include "graph/attrs.h"
#include "graph/passes/rewriter.h"

namespace dpt {
namespace {

// [N, C, ...] with one to three further dimensions.
bool is_image(const TensorDesc& d) { return d.shape.rank() >= 3 && d.shape.rank() <= 5; }

// A reshape of the dimensions after the channels alone, which is a view in channels_last too.
bool keeps_channels(const Graph& graph, const GraphNode& n) {
  if (!n.op->is(Trait::view)) return false;
  const TensorDesc &x = graph[n.in[0]].desc, &y = graph[n.out[0]].desc;
  return is_image(x) && is_image(y) && x.shape[0] == y.shape[0] && x.shape[1] == y.shape[1];
}

class LayoutChoice : Rewriter {
 public:
  LayoutChoice(Graph& graph, WeightLayouts weights)
      : Rewriter(graph), weights_(weights), trained_(graph.trained()) {}

  void run() {
    for (const GraphNode& n : graph_.nodes)
      if (n.op->layouts == Layouts::any && n.in.size() == 1) made_of_[n.out[0]] = n.in[0];
    for (GraphNode& n : graph_.nodes)
      if (n.op->weight.index >= 0)
        set_weight(at(n, static_cast<size_t>(n.op->weight.index)), weight_layout(n));
    each_node([&](GraphNode& n) {
      lay_out(n);
      push(std::move(n));
    });
  }

 private:
  // The value with index `index` among a node's inputs followed by its results.
  static ValueId& at(GraphNode& n, size_t index) {
    return index < n.in.size() ? n.in[index] : n.out[index - n.in.size()];
  }
  Layout& layout(ValueId v) { return graph_.values[static_cast<size_t>(v)].desc.layout; }

  // Uses `plain` if both layouts give the same order: this needs fewer reorders and more kernels
  // accept it.
  void set(ValueId v, Layout wanted) {
    layout(v) = same_order(graph_[v].desc.shape, wanted, Layout::plain) ? Layout::plain : wanted;
  }

  // Sets the layout of a weight, and of the parameter from which it was computed element-wise.
  void set_weight(ValueId v, Layout wanted) {
    set(v, wanted);
    if (const auto it = made_of_.find(v); it != made_of_.end()) set_weight(it->second, wanted);
  }

  // If the input x of a linear layer needs no gradient, a transposed weight lets all its products
  // combine rows of x with rows of the weight. Kernels then skip the zeros of x, which are often
  // half of an image.
  Layout weight_layout(GraphNode& n) {
    if (weights_ == WeightLayouts::channels_last)
      return n.op->layouts == Layouts::images ? Layout::channels_last : Layout::plain;
    if (n.op->layouts == Layouts::images) return Layout::transposed;
    constexpr int64_t kPays = 64;
    const Shape& w = graph_[at(n, static_cast<size_t>(n.op->weight.index))].desc.shape;
    const ValueId x = n.in[static_cast<size_t>(n.op->weight.factor)];
    const bool pays = w[0] >= kPays && w[1] >= kPays && !trained_[static_cast<size_t>(x)];
    return pays ? Layout::transposed : Layout::plain;
  }

  void lay_out(GraphNode& n) {
    Layout wanted = Layout::plain;
    if (n.op->layouts == Layouts::images) wanted = Layout::channels_last;
    if (n.op->layouts == Layouts::any || keeps_channels(graph_, n))
      for (ValueId v : n.in)
        if (layout(v) != Layout::plain) wanted = layout(v);
    const auto own = [&](size_t index) { return std::cmp_equal(index, n.op->weight.index); };
    const auto of = [&](ValueId v) {
      return n.op->layouts == Layouts::images && !is_image(graph_[v].desc) ? Layout::plain : wanted;
    };
    for (size_t i = 0; i < n.in.size(); ++i)
      if (!own(i)) n.in[i] = in_layout(n.in[i], of(n.in[i]), n);
    for (size_t i = 0; i < n.out.size(); ++i)
      if (!own(n.in.size() + i)) set(n.out[i], of(n.out[i]));
  }

  // v itself, or a reordered copy, which all users share.
  ValueId in_layout(ValueId v, Layout wanted, const GraphNode& user) {
    const TensorDesc d = graph_[v].desc;
    if (same_order(d.shape, d.layout, wanted)) return v;
    const auto [made, first] = copies_.try_emplace({v, wanted}, kNoValue);
    if (first) {
      made->second = add({.name = fmt::format("{}.{}", graph_[v].name, name_of(wanted)),
                          .desc = {d.dtype, d.shape, wanted}});
      insert("reorder", Reorder{wanted}, v, made->second, user);
    }
    return made->second;
  }

  WeightLayouts weights_;
  std::vector<bool> trained_;
  std::map<std::pair<ValueId, Layout>, ValueId> copies_;
  std::map<ValueId, ValueId> made_of_;  // the input of an element-wise, one-input operator
};

}  // namespace

void choose_layouts(Graph& graph, WeightLayouts weights) { LayoutChoice(graph, weights).run(); }

}  // namespace dpt
