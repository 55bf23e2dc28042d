// Products, activations and operators that move elements in ONNX.
#include <any>
#include <cmath>
#include <limits>

#include "export/onnx_graph.h"
#include "graph/attrs.h"
#include "graph/formulas/activations.h"
#include "graph/operator.h"

namespace dpt {
namespace {

using Extents = std::vector<int64_t>;

template <class T>
const T& settings(const GraphNode& n) {
  return std::any_cast<const T&>(n.attrs);
}

void linear(OnnxGraph& to, const GraphNode& n) {
  const std::string x = to[n.in[0]], w = to[n.in[1]];
  if (to.shape(n.in[0]).rank() == 2) {
    std::vector<std::string> in = {x, w};
    if (n.in.size() > 2) in.push_back(to[n.in[2]]);
    return to.set(n.out[0], to.add("Gemm", std::move(in), {{"transB", int64_t{1}}}));
  }
  const std::string transposed = to.add("Transpose", {w}, {{"perm", Extents{1, 0}}});
  std::string y = to.add("MatMul", {x, transposed});
  if (n.in.size() > 2) y = to.add("Add", {y, to[n.in[2]]});
  to.set(n.out[0], y);
}

// 0 for positions that a position attends to, minus infinity for later ones.
std::string causal_mask(OnnxGraph& to, int64_t positions) {
  std::vector<float> mask(static_cast<size_t>(positions * positions));
  for (int64_t i = 0; i < positions; ++i)
    for (int64_t j = i + 1; j < positions; ++j)
      mask[static_cast<size_t>(i * positions + j)] = -std::numeric_limits<float>::infinity();
  return to.numbers({positions, positions}, mask);
}

void attention(OnnxGraph& to, const GraphNode& n) {
  const auto& s = settings<Attention>(n);
  const Shape& y = to.shape(n.out[0]);
  const int64_t width = y.back(), columns = width / s.heads;
  const std::vector<std::string> parts = to.add_several(
      "Split", {to[n.in[0]], to.integers({width, width, width})}, {{"axis", int64_t{2}}}, 3);
  // [N, T, E] to [N, heads, T, E / heads], or with the last two exchanged.
  const std::string by_heads = to.integers({0, 0, s.heads, columns});
  const auto heads_of = [&](size_t part, Extents order) {
    return to.add("Transpose", {to.add("Reshape", {parts[part], by_heads})},
                  {{"perm", std::move(order)}});
  };
  const std::string q = heads_of(0, {0, 2, 1, 3}), k = heads_of(1, {0, 2, 3, 1}),
                    v = heads_of(2, {0, 2, 1, 3});
  std::string scores = to.add(
      "Mul", {to.add("MatMul", {q, k}), to.number(1 / std::sqrt(static_cast<double>(columns)))});
  if (s.causal) scores = to.add("Add", {scores, causal_mask(to, y[1])});
  const std::string weights = to.add("Softmax", {scores}, {{"axis", int64_t{3}}});
  const std::string mixed =
      to.add("Transpose", {to.add("MatMul", {weights, v})}, {{"perm", Extents{0, 2, 1, 3}}});
  to.set(n.out[0], to.add("Reshape", {mixed, to.integers({0, 0, width})}));
}

// An operator with the same name and no settings.
template <const char* kName>
void same(OnnxGraph& to, const GraphNode& n) {
  std::vector<std::string> in;
  for (const ValueId v : n.in) in.push_back(to[v]);
  to.set(n.out[0], to.add(kName, std::move(in)));
}
constexpr char kAdd[] = "Add", kMul[] = "Mul", kRelu[] = "Relu", kSelu[] = "Selu",
               kSigmoid[] = "Sigmoid", kTanh[] = "Tanh", kHardSwish[] = "HardSwish",
               kSoftsign[] = "Softsign";

void with_alpha(OnnxGraph& to, const GraphNode& n, std::string_view op, double alpha) {
  to.set(n.out[0], to.add(op, {to[n.in[0]]}, {{"alpha", static_cast<float>(alpha)}}));
}
void leaky_relu(OnnxGraph& to, const GraphNode& n) {
  with_alpha(to, n, "LeakyRelu", settings<formula::LeakyRelu>(n).negative_slope);
}
void elu(OnnxGraph& to, const GraphNode& n) {
  with_alpha(to, n, "Elu", settings<formula::Elu>(n).alpha);
}
void celu(OnnxGraph& to, const GraphNode& n) {
  with_alpha(to, n, "Celu", settings<formula::Celu>(n).alpha);
}
void logsigmoid(OnnxGraph& to, const GraphNode& n) {
  to.set(n.out[0], to.add("Neg", {to.add("Softplus", {to.add("Neg", {to[n.in[0]]})})}));
}
void tanhshrink(OnnxGraph& to, const GraphNode& n) {
  const std::string x = to[n.in[0]];
  to.set(n.out[0], to.add("Sub", {x, to.add("Tanh", {x})}));
}
void shrink(OnnxGraph& to, const GraphNode& n, double lambd, double bias) {
  to.set(n.out[0],
         to.add("Shrink", {to[n.in[0]]},
                {{"bias", static_cast<float>(bias)}, {"lambd", static_cast<float>(lambd)}}));
}
void hardshrink(OnnxGraph& to, const GraphNode& n) {
  shrink(to, n, settings<formula::Hardshrink>(n).lambd, 0);
}
void softshrink(OnnxGraph& to, const GraphNode& n) {
  const double lambd = settings<formula::Softshrink>(n).lambd;
  shrink(to, n, lambd, lambd);
}
void threshold(OnnxGraph& to, const GraphNode& n) {
  const auto& s = settings<formula::Threshold>(n);
  const std::string x = to[n.in[0]];
  to.set(n.out[0], to.add("Where", {to.add("LessOrEqual", {x, to.number(s.threshold)}),
                                    to.number(s.replacement), x}));
}
void relu6(OnnxGraph& to, const GraphNode& n) {
  to.set(n.out[0], to.add("Clip", {to[n.in[0]], to.number(0), to.number(6)}));
}
void hardtanh(OnnxGraph& to, const GraphNode& n) {
  const auto& s = settings<formula::Hardtanh>(n);
  to.set(n.out[0], to.add("Clip", {to[n.in[0]], to.number(s.min_val), to.number(s.max_val)}));
}
void hardsigmoid(OnnxGraph& to, const GraphNode& n) {
  to.set(n.out[0], to.add("HardSigmoid", {to[n.in[0]]}, {{"alpha", 1.0F / 6}, {"beta", 0.5F}}));
}
// Operator set 17 has no Mish.
void mish(OnnxGraph& to, const GraphNode& n) {
  const std::string x = to[n.in[0]];
  to.set(n.out[0], to.add("Mul", {x, to.add("Tanh", {to.add("Softplus", {x})})}));
}
void glu(OnnxGraph& to, const GraphNode& n) {
  const int dim = settings<Glu>(n).dim;
  const int64_t half = to.shape(n.out[0])[dim];
  const std::vector<std::string> parts = to.add_several(
      "Split", {to[n.in[0]], to.integers({half, half})}, {{"axis", int64_t{dim}}}, 2);
  to.set(n.out[0], to.add("Mul", {parts[0], to.add("Sigmoid", {parts[1]})}));
}
void silu(OnnxGraph& to, const GraphNode& n) {
  const std::string x = to[n.in[0]];
  to.set(n.out[0], to.add("Mul", {x, to.add("Sigmoid", {x})}));
}

// x / 2 (1 + shape), where gelu's formulas differ in the shape.
void half_of(OnnxGraph& to, const GraphNode& n, const std::string& shape) {
  const std::string half = to.add("Mul", {to[n.in[0]], to.number(0.5)});
  to.set(n.out[0], to.add("Mul", {half, to.add("Add", {shape, to.number(1)})}));
}
void gelu(OnnxGraph& to, const GraphNode& n) {
  const std::string scaled = to.add("Mul", {to[n.in[0]], to.number(std::sqrt(0.5))});
  half_of(to, n, to.add("Erf", {scaled}));
}
void gelu_tanh(OnnxGraph& to, const GraphNode& n) {
  const std::string x = to[n.in[0]];
  const std::string cube = to.add("Mul", {to.add("Mul", {x, x}), x});
  const std::string sum = to.add("Add", {x, to.add("Mul", {cube, to.number(0.044715)})});
  half_of(to, n, to.add("Tanh", {to.add("Mul", {sum, to.number(0.79788456080286535588)})}));
}

void softplus(OnnxGraph& to, const GraphNode& n) {
  const auto& s = settings<formula::Softplus>(n);
  const std::string x = to[n.in[0]];
  const std::string z = s.beta == 1 ? x : to.add("Mul", {x, to.number(s.beta)});
  std::string y = to.add("Softplus", {z});
  if (s.beta != 1) y = to.add("Div", {y, to.number(s.beta)});
  // Above the threshold, softplus(z) - z is less than exp(-threshold).
  constexpr double kNothing = 17;
  if (s.threshold < kNothing)
    y = to.add("Where", {to.add("Greater", {z, to.number(s.threshold)}), x, y});
  to.set(n.out[0], y);
}

void prelu(OnnxGraph& to, const GraphNode& n) {
  const Shape &x = to.shape(n.in[0]), &w = to.shape(n.in[1]);
  std::string slope = to[n.in[1]];
  if (w[0] != 1 && x.rank() > 2) {
    Extents extents(static_cast<size_t>(x.rank() - 1), 1);
    extents[0] = w[0];
    slope = to.add("Reshape", {slope, to.integers(extents)});
  }
  to.set(n.out[0], to.add("PRelu", {to[n.in[0]], slope}));
}

template <const char* kName>
void along_dim(OnnxGraph& to, const GraphNode& n) {
  to.set(n.out[0], to.add(kName, {to[n.in[0]]}, {{"axis", int64_t{settings<Softmax>(n).dim}}}));
}
constexpr char kSoftmax[] = "Softmax", kLogSoftmax[] = "LogSoftmax";

void embedding(OnnxGraph& to, const GraphNode& n) {
  to.set(n.out[0], to.add("Gather", {to[n.in[1]], to[n.in[0]]}, {{"axis", int64_t{0}}}));
}

void position_embedding(OnnxGraph& to, const GraphNode& n) {
  const int64_t positions = to.shape(n.in[0])[1];
  std::string rows = to[n.in[1]];
  if (to.shape(n.in[1])[0] > positions)
    rows = to.add("Slice", {rows, to.integers({0}), to.integers({positions}), to.integers({0})});
  to.set(n.out[0], to.add("Add", {to[n.in[0]], rows}));
}

void concat(OnnxGraph& to, const GraphNode& n) {
  std::vector<std::string> in;
  for (const ValueId v : n.in) in.push_back(to[v]);
  to.set(n.out[0], to.add("Concat", std::move(in), {{"axis", int64_t{settings<Concat>(n).dim}}}));
}

void slice(OnnxGraph& to, const GraphNode& n) {
  const auto& s = settings<SliceOf>(n);
  to.set(n.out[0], to.add("Slice", {to[n.in[0]], to.integers({s.begin}),
                                    to.integers({s.begin + s.length}), to.integers({s.dim})}));
}

void pad(OnnxGraph& to, const GraphNode& n) {
  const auto& s = settings<Pad>(n);
  const auto rank = static_cast<size_t>(to.shape(n.in[0]).rank());
  Extents pads(s.before.begin(), s.before.begin() + rank);
  pads.insert(pads.end(), s.behind.begin(), s.behind.begin() + rank);
  to.set(n.out[0], to.add("Pad", {to[n.in[0]], to.integers(pads), to.number(s.value)}));
}

void permute(OnnxGraph& to, const GraphNode& n) {
  const auto& order = settings<Permute>(n).order;
  to.set(n.out[0],
         to.add("Transpose", {to[n.in[0]]},
                {{"perm", Extents(order.begin(), order.begin() + to.shape(n.in[0]).rank())}}));
}

void reshape(OnnxGraph& to, const GraphNode& n) {
  const auto shape = to.shape(n.out[0]).extents();
  Extents extents(shape.begin(), shape.end());
  extents[0] = 0;  // as the input's: the batch
  to.set(n.out[0], to.add("Reshape", {to[n.in[0]], to.integers(extents)}));
}

constexpr OnnxOperator kOperators[] = {{"linear", linear},
                                       {"attention", attention},
                                       {"add", same<kAdd>},
                                       {"multiply", same<kMul>},
                                       {"hardtanh", hardtanh},
                                       {"hardsigmoid", hardsigmoid},
                                       {"mish", mish},
                                       {"glu", glu},
                                       {"permute", permute},
                                       {"relu", same<kRelu>},
                                       {"selu", same<kSelu>},
                                       {"sigmoid", same<kSigmoid>},
                                       {"tanh", same<kTanh>},
                                       {"hardswish", same<kHardSwish>},
                                       {"leaky_relu", leaky_relu},
                                       {"elu", elu},
                                       {"celu", celu},
                                       {"softsign", same<kSoftsign>},
                                       {"logsigmoid", logsigmoid},
                                       {"hardshrink", hardshrink},
                                       {"softshrink", softshrink},
                                       {"tanhshrink", tanhshrink},
                                       {"threshold", threshold},
                                       {"relu6", relu6},
                                       {"silu", silu},
                                       {"gelu", gelu},
                                       {"gelu_tanh", gelu_tanh},
                                       {"softplus", softplus},
                                       {"prelu", prelu},
                                       {"softmax", along_dim<kSoftmax>},
                                       {"log_softmax", along_dim<kLogSoftmax>},
                                       {"embedding", embedding},
                                       {"position_embedding", position_embedding},
                                       {"concat", concat},
                                       {"slice", slice},
                                       {"pad", pad},
                                       {"reshape", reshape}};

}  // namespace

std::span<const OnnxOperator> onnx_other_operators() { return kOperators; }

}  // namespace dpt
