#include "graph/passes/torch_order.h"

#include <algorithm>
#include <functional>
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
bool element_wise(const GraphNode& n) {
  const TorchOrder order = n.op->torch_order;
  return order == TorchOrder::of_first ||
         (order == TorchOrder::by_layouts && n.op->layouts == Layouts::any);
}

// In PyTorch, a pad that adds nothing is a copy, which keeps the memory order.
bool only_cuts(const GraphNode& n) {
  const auto* pad = std::any_cast<Pad>(&n.attrs);
  const auto none = [](int64_t extent) { return extent <= 0; };
  return pad && std::ranges::all_of(pad->before, none) && std::ranges::all_of(pad->behind, none);
}

// Distances in memory of neighbors along each dimension of a value whose dimensions are stored in
// this order.
std::vector<int64_t> strides_in(const Shape& shape, const std::vector<int>& order) {
  std::vector<int64_t> out(order.size());
  int64_t step = 1;
  for (size_t i = order.size(); i-- > 0;) {
    out[static_cast<size_t>(order[i])] = step;
    step *= shape[order[i]];
  }
  return out;
}

std::vector<int> row_major(const Shape& shape) {
  std::vector<int> order(static_cast<size_t>(shape.rank()));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

// The order after a reshape: PyTorch's reshape is a view where the strides allow it (computeStride
// in ATen/TensorUtils.cpp), else a row-major copy.
std::vector<int> reshaped_order(const Shape& from, const std::vector<int>& order, const Shape& to) {
  const std::vector<int64_t> old = strides_in(from, order);
  std::vector<int64_t> strides(static_cast<size_t>(to.rank()), 1);
  if (from.elements() == 0 || from.rank() == 0) return row_major(to);
  int at = to.rank() - 1;
  int64_t base = old.back(), elements = 1, viewed = 1;
  for (int d = from.rank() - 1; d >= 0; --d) {
    elements *= from[d];
    const bool adjacent =
        d > 0 && (from[d - 1] == 1 || old[static_cast<size_t>(d - 1)] == elements * base);
    if (adjacent) continue;
    for (; at >= 0 && (viewed < elements || to[at] == 1); --at) {
      strides[static_cast<size_t>(at)] = viewed * base;
      viewed *= to[at];
    }
    if (viewed != elements) return row_major(to);
    if (d > 0) base = old[static_cast<size_t>(d - 1)];
    elements = viewed = 1;
  }
  std::vector<int> out = row_major(to);
  std::ranges::stable_sort(out, std::greater<>(),
                           [&](int d) { return strides[static_cast<size_t>(d)]; });
  return out;
}

std::vector<int> permuted_order(const std::vector<int>& order, const Permute& p) {
  std::vector<int> out;
  for (const int from : order)
    out.push_back(static_cast<int>(std::ranges::find(p.order, from) - p.order.begin()));
  return out;
}

std::vector<int> channels_last(int rank) {
  return rank == 4 ? std::vector<int>{0, 2, 3, 1} : std::vector<int>{0, 2, 1};
}

// Whether the result of an operator on x is channels_last in PyTorch if x is. Those that do not,
// such as instance norm, make a row-major copy.
bool keeps_format(const GraphNode& n, const Shape& x) {
  const TorchOrder order = n.op->torch_order;
  if (x.rank() == 3) return order == TorchOrder::image_or_sequence;
  if (x.rank() != 4) return false;
  if (const auto* pad = std::any_cast<Pad>(&n.attrs)) return pad->mode != Pad::Mode::circular;
  if (const auto* norm = std::any_cast<RowNorm>(&n.attrs))
    return norm->groups > 0 ? norm->groups != x[1] : !norm->center;
  return n.op->layouts == Layouts::images || order == TorchOrder::image ||
         order == TorchOrder::image_or_sequence;
}

}  // namespace

std::vector<int> torch_order(const Graph& graph, ValueId v) {
  const Shape& shape = graph[v].desc.shape;
  const GraphNode* n = maker_of(graph, v);
  if (!n || n->in.empty()) return row_major(shape);
  const Shape& from = graph[n->in.at(0)].desc.shape;
  if (element_wise(*n) || only_cuts(*n)) return torch_order(graph, n->in.at(0));
  if (const auto* p = std::any_cast<Permute>(&n->attrs))
    return permuted_order(torch_order(graph, n->in.at(0)), *p);
  if (std::any_cast<Reshape>(&n->attrs))
    return reshaped_order(from, torch_order(graph, n->in.at(0)), shape);
  if (keeps_format(*n, from) && shape.rank() == from.rank() &&
      torch_order(graph, n->in.at(0)) == channels_last(from.rank()))
    return channels_last(from.rank());
  std::vector<int> order = row_major(shape);
  // nn.MultiheadAttention(batch_first=True) computes [T, N, E] and returns a transposed view. The
  // results of all other operators are row-major, whatever the order of their inputs.
  if (n->op->torch_order == TorchOrder::of_sequence_first) {
    const GraphNode* maker = maker_of(graph, n->in.at(0));
    if (maker && maker->op->torch_order == TorchOrder::sequence_first)
      std::swap(order.at(0), order.at(1));
  }
  return order;
}

}  // namespace dpt
