#include "onnx/nodes.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "graph/attrs.h"

namespace dpt::onnx {
namespace {

using Extents = std::vector<int64_t>;
using Results = std::vector<Comparison>;

int64_t elements(const Extents& e, size_t from, size_t to) {
  return std::accumulate(e.begin() + static_cast<ptrdiff_t>(from),
                         e.begin() + static_cast<ptrdiff_t>(to), int64_t{1}, std::multiplies<>());
}

// The case's axis counted from the front; by default the `otherwise`th.
int64_t axis_of(const Case& c, int64_t otherwise) {
  const auto axis = static_cast<int64_t>(c.number("axis", static_cast<double>(otherwise)));
  return axis < 0 ? axis + static_cast<int64_t>(c.inputs[0].extents.size()) : axis;
}

Extents one_sample(Extents e) {
  e.insert(e.begin(), 1);
  return e;
}

// The extents and the axis, where the first one is not the axis.
std::pair<Extents, int64_t> off_the_batch(const Extents& e, int64_t axis) {
  return axis > 0 ? std::pair{e, axis} : std::pair{one_sample(e), axis + 1};
}

// [rows, columns] of a matrix, transposed.
std::vector<double> transposed(const std::vector<double>& m, int64_t rows, int64_t columns) {
  std::vector<double> out;
  for (int64_t j = 0; j < columns; ++j)
    for (int64_t i = 0; i < rows; ++i) out.push_back(m[static_cast<size_t>(i * columns + j)]);
  return out;
}

Results layer_of_one(const Case& c, std::string_view name, const std::string& settings,
                     Tolerance tolerance = kRounded) {
  Net net;
  net.expect(net.layer(name, settings, {net.real(c.inputs[0])}), c.outputs[0], tolerance);
  return net.run();
}

Results selu(const Case& c) {
  if (c.attributes.find("alpha") || c.attributes.find("gamma"))
    throw Inexpressible{"selu has the paper's constants only"};
  return layer_of_one(c, "selu", "{}");
}

Results swish(const Case& c) {
  if (c.number("alpha", 1) != 1) throw Inexpressible{"silu has alpha 1 only"};
  return layer_of_one(c, "silu", "{}");
}

Results shrink(const Case& c) {
  const double lambd = c.number("lambd", 0.5), bias = c.number("bias", 0);
  if (bias != 0 && bias != lambd) throw Inexpressible{"softshrink has one number"};
  return layer_of_one(c, bias == 0 ? "hardshrink" : "softshrink", text(lambd));
}

Results softmax(const Case& c, std::string_view name) {
  const auto [extents, axis] = off_the_batch(c.inputs[0].extents, axis_of(c, -1));
  Net net;
  const ValueId x = net.real(c.inputs[0], extents);
  net.expect(net.layer(name, fmt::format("dim: {}", axis), {x}), c.outputs[0], kRounded);
  return net.run();
}

Results layer_norm(const Case& c) {
  const auto [extents, axis] = off_the_batch(c.inputs[0].extents, axis_of(c, -1));
  const Extents last(extents.begin() + axis, extents.end());
  const bool bias = c.has_input(2);
  Net net;
  std::vector<std::vector<double>> parameters = {c.inputs[1].data};
  if (bias) parameters.push_back(c.inputs[2].data);
  const ValueId y =
      net.layer("layer_norm",
                fmt::format("{{normalized_shape: [{}], eps: {}, bias: {}}}", fmt::join(last, ", "),
                            text(c.number("epsilon", 1e-5)), bias),
                {net.real(c.inputs[0], extents)}, parameters);
  // Mean and InvStdDev, too, which the gradient uses.
  for (size_t i = 0; i < c.outputs.size(); ++i)
    net.expect(net.results(y).at(i), c.outputs[i], kRounded);
  return net.run();
}

Results dropout(const Case& c) {
  const double ratio = c.has_input(1) ? c.inputs[1].data[0] : c.number("ratio", 0.5);
  const bool training = c.has_input(2) && c.inputs[2].data[0] != 0;
  if (training && ratio > 0 && c.outputs.size() < 2)
    throw Inexpressible{"a mask of numpy's generator that the case does not give"};
  Net net({.training = training, .torch_masks = true});
  const ValueId y = net.layer("dropout", text(ratio), {net.real(c.inputs[0])});
  if (c.outputs.size() > 1) net.masks(c.outputs[1]);
  net.expect(y, c.outputs[0], training ? kRounded : kMoved);
  return net.run();
}

// y = x B + C with B [in, out] and no, one or `out` numbers in C.
Results linear(const Case& c, const Tensor& x, int64_t rows, int64_t out,
               const std::vector<double>& weight, std::vector<double> bias) {
  const int64_t in = static_cast<int64_t>(x.data.size()) / rows;
  if (bias.size() == 1) bias.assign(static_cast<size_t>(out), bias[0]);
  Net net;
  std::vector<std::vector<double>> parameters = {weight};
  if (!bias.empty()) parameters.push_back(bias);
  const ValueId y =
      net.layer("linear", fmt::format("{{out_features: {}, bias: {}}}", out, !bias.empty()),
                {net.real(x, {rows, in})}, parameters);
  net.expect(y, c.outputs[0], kRounded);
  return net.run();
}

Results gemm(const Case& c) {
  Tensor a = c.inputs[0];
  const Tensor& b = c.inputs[1];
  if (c.number("transA", 0) != 0) {
    a.data = transposed(a.data, a.extents[0], a.extents[1]);
    std::swap(a.extents[0], a.extents[1]);
  }
  const bool as_torch = c.number("transB", 0) != 0;  // [out, in]
  std::vector<double> weight = as_torch ? b.data : transposed(b.data, b.extents[0], b.extents[1]);
  for (double& w : weight) w *= c.number("alpha", 1);
  std::vector<double> bias;
  if (c.has_input(2)) {
    const Extents& e = c.inputs[2].extents;
    if (e.size() == 2 && e[0] != 1) throw Inexpressible{"linear has one bias for all samples"};
    bias = c.inputs[2].data;
    for (double& w : bias) w *= c.number("beta", 1);
  }
  return linear(c, a, a.extents[0], b.extents[as_torch ? 0 : 1], weight, bias);
}

Results matmul(const Case& c) {
  const Extents &a = c.inputs[0].extents, &b = c.inputs[1].extents;
  if (b.size() > 2) throw Inexpressible{"linear has one matrix for all samples"};
  const int64_t in = b[0], out = b.size() == 2 ? b[1] : 1;
  return linear(c, c.inputs[0], elements(a, 0, a.size()) / in, out,
                transposed(c.inputs[1].data, in, out), {});
}

Results add(const Case& c) {
  Net net;
  std::vector<ValueId> x;
  for (const Tensor& t : c.inputs) x.push_back(net.real(t));
  net.expect(net.layer("add", "{}", x), c.outputs[0], kRounded);
  return net.run();
}

Results concat(const Case& c) {
  const int64_t axis = axis_of(c, 0);
  Net net;
  std::vector<ValueId> x;
  for (const Tensor& t : c.inputs) x.push_back(net.real(t, off_the_batch(t.extents, axis).first));
  const int64_t dim = off_the_batch({}, axis).second;
  net.expect(net.layer("concat", fmt::format("dim: {}", dim), x), c.outputs[0], kMoved);
  return net.run();
}

// The operator that concat's gradient is made of.
Results split(const Case& c) {
  const auto axis = static_cast<size_t>(axis_of(c, 0));
  Net net;
  const ValueId x = net.real(c.inputs[0], one_sample(c.inputs[0].extents));
  int64_t begin = 0;
  for (const Tensor& part : c.outputs) {
    const int64_t length = part.extents[axis];
    net.expect(net.op("slice", {x}, SliceOf{static_cast<int>(axis) + 1, begin, length}), part,
               kMoved);
    begin += length;
  }
  return net.run();
}

Results slice(const Case& c) {
  const Extents& extents = c.inputs[0].extents;
  Net net;
  ValueId x = net.real(c.inputs[0], one_sample(extents));
  const auto at = [&](size_t input, size_t i, double otherwise) {
    return static_cast<int64_t>(c.has_input(input) ? c.inputs[input].data[i] : otherwise);
  };
  for (size_t i = 0; i < c.inputs[1].data.size(); ++i) {
    const auto rank = static_cast<int64_t>(extents.size());
    const int64_t named = at(3, i, static_cast<double>(i));
    const int64_t axis = named < 0 ? named + rank : named;
    if (at(4, i, 1) != 1) throw Inexpressible{"slice takes every element of a range"};
    const int64_t extent = extents[static_cast<size_t>(axis)];
    const auto place = [&](int64_t p) {
      return std::clamp(p < 0 ? p + extent : p, int64_t{0}, extent);
    };
    const int64_t begin = place(at(1, i, 0)), end = place(at(2, i, 0));
    x = net.op("slice", {x}, SliceOf{static_cast<int>(axis) + 1, begin, end - begin});
  }
  net.expect(x, c.outputs[0], kMoved);
  return net.run();
}

// ONNX gives a matrix whose rows are what stands before the axis: the samples.
Results flatten(const Case& c) {
  const Extents& e = c.inputs[0].extents;
  const auto axis = static_cast<size_t>(axis_of(c, 1));
  Extents extents = {elements(e, 0, axis)};
  extents.insert(extents.end(), e.begin() + static_cast<ptrdiff_t>(axis), e.end());
  Net net;
  const ValueId y = net.layer("flatten", "{}", {net.real(c.inputs[0], extents)});
  net.expect(y, c.outputs[0], kMoved);
  return net.run();
}

Results reshape(const Case& c) {
  Net net;
  const ValueId x = net.real(c.inputs[0]);
  net.expect(net.op("reshape", {x}, Reshape{Shape(c.outputs[0].extents)}), c.outputs[0], kMoved);
  return net.run();
}

Results gather(const Case& c) {
  if (axis_of(c, 0) != 0) throw Inexpressible{"embedding looks up whole rows of a table"};
  const Extents& e = c.inputs[0].extents;
  for (double row : c.inputs[1].data)
    if (row < 0) throw Inexpressible{"embedding counts rows from the front, as torch does"};
  Net net;
  const ValueId y = net.layer(
      "embedding",
      fmt::format("{{num_embeddings: {}, embedding_dim: {}}}", e[0], elements(e, 1, e.size())),
      {net.indices(c.inputs[1])}, {c.inputs[0].data});
  net.expect(y, c.outputs[0], kMoved);
  return net.run();
}

// What `reduction: none` gives is the sum over a batch of one place, for each place.
std::vector<double> loss_of_each(const Case& c, std::string_view name, const std::string& settings,
                                 size_t precision) {
  const Extents& e = c.inputs[0].extents;
  const int64_t classes = e[1], inner = elements(e, 2, e.size());
  std::vector<double> out;
  for (size_t place = 0; place < c.inputs[1].data.size(); ++place) {
    const auto n = static_cast<int64_t>(place) / inner, i = static_cast<int64_t>(place) % inner;
    std::vector<double> scores;
    for (int64_t k = 0; k < classes; ++k)
      scores.push_back(c.inputs[0].data[static_cast<size_t>((n * classes + k) * inner + i)]);
    out.push_back(loss(name, settings, {1, classes}, scores, {c.inputs[1].data[place]})[precision]);
  }
  return out;
}

Results class_loss(const Case& c, std::string_view name) {
  Extents extents = c.inputs[0].extents;  // [N, C, ...]: only how many places there are counts
  if (extents.size() > Shape::kMaxRank)
    extents = {extents[0], extents[1], elements(extents, 2, extents.size())};
  const std::string reduction = c.word("reduction", "mean");
  std::string settings = "{reduction: " + (reduction == "none" ? "sum" : reduction);
  if (c.has_input(2)) settings += ", weight: " + text(c.inputs[2].data);
  if (c.attributes.find("ignore_index"))
    settings += ", ignore_index: " + c.word("ignore_index", "");
  settings += "}";
  Results all;
  for (size_t precision : {0u, 1u}) {
    std::vector<double> got;
    if (reduction == "none")
      got = loss_of_each(c, name, settings, precision);
    else
      got = {loss(name, settings, extents, c.inputs[0].data, c.inputs[1].data)[precision]};
    all.push_back(
        {precision == 0 ? "loss in f64" : "loss in f32", got, c.outputs[0].data, kRounded});
  }
  if (c.outputs.size() > 1) {
    Net log_softmax;  // the second output of cross entropy
    const ValueId x = log_softmax.real(c.inputs[0], extents);
    log_softmax.expect(log_softmax.layer("log_softmax", "dim: 1", {x}), c.outputs[1], kRounded);
    for (Comparison& r : log_softmax.run()) all.push_back(std::move(r));
  }
  return all;
}

std::string alpha(const Case& c, double otherwise) { return text(c.number("alpha", otherwise)); }

using Runner = Results (*)(const Case&);
const std::map<std::string, Runner, std::less<>> kRunners = {
    {"Relu", [](const Case& c) { return layer_of_one(c, "relu", "{}", kMoved); }},
    {"LeakyRelu", [](const Case& c) { return layer_of_one(c, "leaky_relu", alpha(c, 0.01)); }},
    {"Elu", [](const Case& c) { return layer_of_one(c, "elu", alpha(c, 1)); }},
    {"Selu", selu},
    {"Gelu",
     [](const Case& c) {
       return layer_of_one(c, "gelu", "approximate: " + c.word("approximate", "none"));
     }},
    {"Swish", swish},
    {"Sigmoid", [](const Case& c) { return layer_of_one(c, "sigmoid", "{}"); }},
    {"Tanh", [](const Case& c) { return layer_of_one(c, "tanh", "{}"); }},
    {"Softsign", [](const Case& c) { return layer_of_one(c, "softsign", "{}"); }},
    {"Celu", [](const Case& c) { return layer_of_one(c, "celu", alpha(c, 1)); }},
    {"Shrink", shrink},
    {"ThresholdedRelu",
     [](const Case& c) {
       return layer_of_one(c, "threshold", fmt::format("{{threshold: {}, value: 0}}", alpha(c, 1)));
     }},
    {"Softplus", [](const Case& c) { return layer_of_one(c, "softplus", "{}"); }},
    {"HardSwish", [](const Case& c) { return layer_of_one(c, "hardswish", "{}"); }},
    {"Softmax", [](const Case& c) { return softmax(c, "softmax"); }},
    {"LogSoftmax", [](const Case& c) { return softmax(c, "log_softmax"); }},
    {"LayerNormalization", layer_norm},
    {"Dropout", dropout},
    {"Gemm", gemm},
    {"MatMul", matmul},
    {"Add", add},
    {"Sum", add},
    {"Concat", concat},
    {"Split", split},
    {"Slice", slice},
    {"Flatten", flatten},
    {"Reshape", reshape},
    {"Identity", [](const Case& c) { return layer_of_one(c, "identity", "{}", kMoved); }},
    {"Gather", gather},
    {"Conv", run_image_case},
    {"ConvTranspose", run_image_case},
    {"MaxPool", run_image_case},
    {"AveragePool", run_image_case},
    {"GlobalAveragePool", run_image_case},
    {"BatchNormalization", run_image_case},
    {"GroupNormalization", run_image_case},
    {"InstanceNormalization", run_image_case},
    {"PRelu", run_image_case},
    {"Pad", run_image_case},
    {"Upsample", run_image_case},
    {"SoftmaxCrossEntropyLoss", [](const Case& c) { return class_loss(c, "cross_entropy"); }},
    {"NegativeLogLikelihoodLoss", [](const Case& c) { return class_loss(c, "nll_loss"); }},
    {"Adagrad", run_training_case},
    {"Adam", run_training_case},
    {"Momentum", run_training_case},
};

}  // namespace

std::vector<Comparison> run_case(const Case& c) {
  const auto found = kRunners.find(c.op);
  REQUIRE_MESSAGE(found != kRunners.end(), "nodes.cpp does not know ", c.op);
  return found->second(c);
}

}  // namespace dpt::onnx
