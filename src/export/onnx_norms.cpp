// Normalizations in ONNX.
#include <algorithm>
#include <any>

#include "base/error.h"
#include "export/onnx_graph.h"
#include "graph/attrs.h"
#include "graph/operator.h"

namespace dpt {
namespace {

using Extents = std::vector<int64_t>;

template <class T>
const T& settings(const GraphNode& n) {
  return std::any_cast<const T&>(n.attrs);
}

// A weight of the node, or a constant where it has none.
std::string weight_or(OnnxGraph& to, const GraphNode& n, size_t input, const Extents& extents,
                      float otherwise) {
  if (n.in.size() > input) return to[n.in[input]];
  int64_t elements = 1;
  for (const int64_t extent : extents) elements *= extent;
  return to.numbers(extents, std::vector<float>(static_cast<size_t>(elements), otherwise));
}

void layer_norm(OnnxGraph& to, const GraphNode& n) {
  const auto& s = settings<RowNorm>(n);
  const Shape& x = to.shape(n.in[0]);
  const Shape last = x.tail(x.rank() - s.dims);
  const Extents extents(last.extents().begin(), last.extents().end());
  std::vector<std::string> in = {to[n.in[0]], weight_or(to, n, 1, extents, 1)};
  if (n.in.size() > 2) in.push_back(to[n.in[2]]);
  to.set(n.out[0],
         to.add("LayerNormalization", std::move(in),
                {{"axis", int64_t{x.rank() - s.dims}}, {"epsilon", static_cast<float>(s.eps)}}));
}

// Operator set 17 has no RMS normalization.
void rms_norm(OnnxGraph& to, const GraphNode& n) {
  const auto& s = settings<RowNorm>(n);
  const std::string x = to[n.in[0]];
  Extents axes;
  for (int i = 0; i < s.dims; ++i) axes.push_back(to.shape(n.in[0]).rank() - s.dims + i);
  const std::string mean =
      to.add("ReduceMean", {to.add("Mul", {x, x})}, {{"axes", axes}, {"keepdims", int64_t{1}}});
  std::string y = to.add("Div", {x, to.add("Sqrt", {to.add("Add", {mean, to.number(s.eps)})})});
  if (n.in.size() > 1) y = to.add("Mul", {y, to[n.in[1]]});
  to.set(n.out[0], y);
}

// A weight of each channel, so that it multiplies [N, C, ...].
std::string by_channel(OnnxGraph& to, const std::string& weight, const Shape& x) {
  if (x.rank() == 2) return weight;
  Extents extents(static_cast<size_t>(x.rank() - 1), 1);
  extents[0] = x[1];
  return to.add("Reshape", {weight, to.integers(extents)});
}

// Operator set 17 has no group normalization: the groups become the channels of an instance
// normalization.
void group_norm(OnnxGraph& to, const GraphNode& n) {
  const auto& s = settings<RowNorm>(n);
  const Shape& x = to.shape(n.in[0]);
  const OnnxAttribute epsilon{"epsilon", static_cast<float>(s.eps)};
  if (s.groups == x[1] && x.rank() > 2)
    return to.set(n.out[0], to.add("InstanceNormalization",
                                   {to[n.in[0]], weight_or(to, n, 1, {x[1]}, 1),
                                    weight_or(to, n, 2, {x[1]}, 0)},
                                   {epsilon}));
  const auto count = static_cast<size_t>(s.groups);
  const std::string groups =
      to.add("Reshape", {to[n.in[0]], to.integers({0, s.groups, x.tail(1).elements() / s.groups})});
  const std::string ones = to.numbers({s.groups}, std::vector<float>(count, 1)),
                    zeros = to.numbers({s.groups}, std::vector<float>(count, 0));
  const std::string normal = to.add("InstanceNormalization", {groups, ones, zeros}, {epsilon});
  Extents extents(x.extents().begin(), x.extents().end());
  extents[0] = 0;  // as the input's
  std::string y = to.add("Reshape", {normal, to.integers(extents)});
  if (n.in.size() > 1) y = to.add("Mul", {y, by_channel(to, to[n.in[1]], x)});
  if (n.in.size() > 2) y = to.add("Add", {y, by_channel(to, to[n.in[2]], x)});
  to.set(n.out[0], y);
}

// Part of the batch norm that reads its result.
void running_moments(OnnxGraph&, const GraphNode&) {}

void batch_norm(OnnxGraph& to, const GraphNode& n) {
  const auto& s = settings<BatchNorm>(n);
  require(!s.batch && !s.relu && !s.add, "a batch norm as its layer builds it");
  const auto moments = std::ranges::find_if(
      to.graph().nodes, [&](const GraphNode& m) { return m.out[0] == n.in[1]; });
  const int64_t channels = to.shape(n.in[0])[1];
  to.set(n.out[0],
         to.add("BatchNormalization",
                {to[n.in[0]], weight_or(to, n, 2, {channels}, 1),
                 weight_or(to, n, 3, {channels}, 0), to[moments->in[0]], to[moments->in[1]]},
                {{"epsilon", static_cast<float>(s.eps)}}));
}

constexpr OnnxOperator kOperators[] = {{"layer_norm", layer_norm},
                                       {"rms_norm", rms_norm},
                                       {"group_norm", group_norm},
                                       {"running_moments", running_moments},
                                       {"batch_norm", batch_norm}};

}  // namespace

std::span<const OnnxOperator> onnx_norm_operators() { return kOperators; }

}  // namespace dpt
