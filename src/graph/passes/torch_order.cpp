#include "graph/passes/torch_order.h"

#include <algorithm>
#include <numeric>
#include <string_view>

#include "graph/attrs.h"
#include "graph/operator.h"

namespace dpt {
namespace {

const GraphNode* maker_of(const Graph& graph, ValueId v) {
  const auto n =
      std::ranges::find_if(graph.nodes, [&](const GraphNode& each) { return each.out.at(0) == v; });
  return n == graph.nodes.end() ? nullptr : &*n;
}

// PyTorch's TensorIterator gives a result the memory order of its first full-sized input.
bool element_wise(const GraphNode& n) { return n.op->layouts == Layouts::any || n.op->keeps_order; }

// In PyTorch, a pad that adds nothing is a copy, which keeps the memory order.
bool only_cuts(const GraphNode& n) {
  const auto* pad = std::any_cast<Pad>(&n.attrs);
  const auto none = [](int64_t extent) { return extent <= 0; };
  return pad && std::ranges::all_of(pad->before, none) && std::ranges::all_of(pad->behind, none);
}

}  // namespace

std::vector<int> torch_order(const Graph& graph, ValueId v) {
  const GraphNode* n = maker_of(graph, v);
  while (n && (element_wise(*n) || only_cuts(*n))) n = maker_of(graph, n->in.at(0));
  std::vector<int> order(static_cast<size_t>(graph[v].desc.shape.rank()));
  std::iota(order.begin(), order.end(), 0);
  // nn.MultiheadAttention(batch_first=True) computes [T, N, E] and returns a transposed view. The
  // results of all other operators are row-major, whatever the order of their inputs.
  if (n && n->op == &op("linear")) {
    const GraphNode* from = maker_of(graph, n->in.at(0));
    if (from && from->op->sequence_first) std::swap(order.at(0), order.at(1));
  }
  return order;
}

}  // namespace dpt
