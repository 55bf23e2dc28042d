#include "graph/passes/fuse.h"

#include <functional>
#include <map>
#include <string>

#include <doctest/doctest.h>

#include "backend/cpu/kernels.h"
#include "graph/interpret.h"
#include "graph/passes/layouts.h"
#include "graph/passes/widen.h"
#include "layers/lowered.h"

namespace dpt {
namespace {

Graph graph_of(const std::string& model, bool fuse, TensorDesc x, TensorDesc y,
               bool training = true, bool products = false, PrecisionPolicy precision = {}) {
  ModelText text(model);
  Graph graph = build_graph(text.spec,
                            {.input = x,
                             .target = y,
                             .mode = {.training = training},
                             .differentiate = training,
                             .fuse = fuse,
                             .precision = precision},
                            text.diagnostics);
  REQUIRE_MESSAGE(text.diagnostics.ok(), text.diagnostics.render());
  if (products) {
    fuse_products(graph);
    fuse_batch_norms(graph);
  }
  widen_halves(graph, cpu_kernels());
  choose_layouts(graph);
  return graph;
}

// The operators of batch norm and what it may be fused with, in their order.
std::string operators_of(const Graph& graph) {
  std::string out;
  for (const GraphNode& n : graph.nodes)
    if (n.op->name.starts_with("batch_norm") || n.op->name.starts_with("relu") ||
        n.op->name == "add")
      out += label_of(n) + "\n";
  return out;
}

const std::string kBlock =
    "model:\n"
    "  - {conv2d: {out_channels: 20, kernel_size: 3, padding: 1}, name: conv0}\n"
    "  - {batch_norm2d: null, name: bn0}\n"
    "  - {relu: null, name: x}\n"
    "  - {conv2d: {out_channels: 20, kernel_size: 1}, name: conv1}\n"
    "  - {batch_norm2d: {bias: false}, name: bn1}\n"
    "  - {add: null, from: [x, bn1]}\n"
    "  - {relu: null, name: y}\n"
    "  - {conv2d: {out_channels: 20, kernel_size: 1}, name: conv2}\n"
    "  - {batch_norm2d: {affine: false}, name: bn2}\n"
    "  - {conv2d: {out_channels: 20, kernel_size: 1}, from: y, name: conv3}\n"
    "  - {batch_norm2d: null, name: bn3}\n"
    "  - {add: null, from: [bn2, bn3]}\n"
    "  - relu\n"
    "  - flatten\n"
    "  - {linear: 5}\n"
    "  - {batch_norm1d: null}\n"
    "  - relu\n"
    "  - {linear: 3}\n";
const TensorDesc kImages = real({4, 3, 5, 6}), kTargets = real({4, 3});

using Results = std::map<std::string, HostTensor>;

// Loss, output, gradients and running statistics of one step, with numbers that depend on the names
// alone.
Results run(const Graph& graph, std::span<const KernelType> kernels = cpu_kernels()) {
  std::vector<HostTensor> values;
  for (const Value& v : graph.values) {
    std::mt19937 random(static_cast<uint32_t>(std::hash<std::string>{}(v.name)));
    values.emplace_back(v.desc);
    if (v.role == Role::activation) continue;
    for (size_t i = 0; i < values.back().size(); ++i)
      values.back().set(
          i, v.role == Role::divisor ? 1 : std::uniform_real_distribution<double>(-1, 1)(random));
  }
  run_graph(graph, values, {}, {}, kernels);
  Results out;
  const auto keep = [&](const std::string& name, ValueId v) {
    out.emplace(name, values[static_cast<size_t>(v)]);
  };
  keep("loss", graph.loss);
  keep("output", graph.output);
  for (size_t i = 0; i < graph.parameters.size(); ++i)
    keep("d " + graph[graph.parameters[i]].name, graph.gradients[i]);
  for (const Graph::Update& u : graph.updates) keep(graph[u.buffer].name, u.next);
  return out;
}

}  // namespace

TEST_CASE("batch norm becomes one with relu, and with an addition in between") {
  CHECK(operators_of(graph_of(kBlock, true, kImages, kTargets)) ==
        "batch_norm{relu}\n"
        "batch_norm{add,relu}\n"
        "batch_norm\n"
        "batch_norm{add,relu}\n"
        "batch_norm{relu}\n"
        "batch_norm_sums{relu}\n"
        "batch_norm_weight_gradient\n"
        "batch_norm_input_gradient{relu}\n"
        "batch_norm_sums{add,relu}\n"
        "batch_norm_input_gradient\n"
        "batch_norm_sums\n"
        "batch_norm_weight_gradient\n"
        "batch_norm_input_gradient\n"
        "batch_norm_sums{add,relu}\n"
        "batch_norm_weight_gradient\n"
        "batch_norm_input_gradient\n"
        "add\n"
        "batch_norm_sums{relu}\n"
        "batch_norm_weight_gradient\n"
        "batch_norm_input_gradient{relu}\n");
}

void same_results(Results fused, Results apart) {
  REQUIRE(fused.size() == apart.size());
  for (auto& result : fused) {
    HostTensor &value = result.second, &other = apart.at(result.first);
    CAPTURE(result.first);
    REQUIRE(value.desc == other.desc);
    for (size_t i = 0; i < value.size(); ++i) CHECK(value.get(i) == other.get(i));
  }
}

TEST_CASE("what is fused has the bits of what is not, in halves too") {
  using Level = PrecisionPolicy::Level;
  for (const PrecisionPolicy& precision :
       {PrecisionPolicy{}, PrecisionPolicy{.level = Level::autocast, .half = DType::bf16},
        PrecisionPolicy{.level = Level::autocast, .half = DType::f16}}) {
    CAPTURE(text_of(precision));
    const Results fused = run(graph_of(kBlock, true, kImages, kTargets, true, false, precision));
    CHECK(fused.size() > 20);
    same_results(fused, run(graph_of(kBlock, false, kImages, kTargets, true, false, precision)));
  }
}

// The operators of products and what they may be fused with, in their order.
std::string products_of(const Graph& graph) {
  std::string out;
  for (const GraphNode& n : graph.nodes)
    for (const std::string_view part : {"linear", "convolution", "relu", "sum_rows", "matmul"})
      if (n.op->name.starts_with(part)) out += std::string(n.op->name) + " " + n.layer + "\n";
  return out;
}

const std::string kProducts =
    "model:\n"
    "  - {conv2d: {out_channels: 4, kernel_size: 3}, name: conv}\n"
    "  - relu\n"
    "  - {conv2d: {out_channels: 4, kernel_size: 1, bias: false}, name: thin}\n"
    "  - relu\n"
    "  - flatten\n"
    "  - {linear: 6, name: a}\n"
    "  - {relu: null, name: b}\n"
    "  - {linear: {out_features: 6, bias: false}, name: c}\n"
    "  - {relu: null, name: d}\n"
    "  - {add: null, from: [c, d]}\n"
    "  - {linear: 3, name: e}\n";

TEST_CASE("products become one with relu, and gradients of weights with those of biases") {
  // Somebody else reads c, which has no bias.
  CHECK(products_of(graph_of(kProducts, true, kImages, kTargets, true, true)) ==
        "convolution_relu conv\n"
        "convolution thin\n"
        "relu 3\n"
        "linear_relu_mask a\n"
        "linear c\n"
        "relu d\n"
        "linear e\n"
        "matmul e\n"
        "linear_weight_bias_gradient e\n"
        "relu_gradient d\n"
        "linear_weight_gradient c\n"
        "matmul_relu_gradient b\n"
        "matmul a\n"
        "linear_weight_bias_gradient a\n"
        "relu_gradient 3\n"
        "convolution_transpose thin\n"
        "convolution_weight_gradient thin\n"
        "relu_gradient 1\n"
        "convolution_weight_gradient conv\n");
  CHECK(products_of(graph_of(kProducts, true, kImages, kTargets, false, true)) ==
        "convolution_relu conv\nconvolution thin\nrelu 3\nlinear_relu a\nlinear c\nrelu d\nlinear "
        "e\n");
}

TEST_CASE("the gradients of a layer or group norm become one, with the same bits") {
  const std::string norms =
      "model:\n"
      "  - {conv2d: {out_channels: 4, kernel_size: 3}, name: conv}\n"
      "  - {instance_norm: {affine: true}, name: a}\n"
      "  - {group_norm: {num_groups: 2, affine: false}, name: b}\n"
      "  - {layer_norm: {normalized_shape: [3, 4]}, name: c}\n"
      "  - flatten\n"
      "  - {linear: 3}\n";
  const Graph graph = graph_of(norms, true, kImages, kTargets, true, true);
  std::string gradients;
  for (const GraphNode& n : graph.nodes)
    if (n.op->name.find("norm_") != std::string::npos)
      gradients += std::string(n.op->name) + " " + n.layer + "\n";
  CHECK(gradients == "layer_norm_backward c\ngroup_norm_input_gradient b\ngroup_norm_backward a\n");
  same_results(run(graph, {}), run(graph_of(norms, true, kImages, kTargets), {}));
}

TEST_CASE("places of pooling become bytes where a byte can hold them, with the same bits") {
  const std::string pools =
      "model:\n"
      "  - {conv2d: {out_channels: 2, kernel_size: 1}, name: conv}\n"
      "  - {max_pool2d: {kernel_size: 3, stride: 2, padding: 1}, name: a}\n"
      "  - {max_pool2d: {kernel_size: [1, 128], padding: [0, 60]}, name: b}\n"
      "  - {max_pool2d: {kernel_size: [1, 129], padding: [0, 64]}, name: c}\n"
      "  - flatten\n"
      "  - {linear: 3}\n";
  const TensorDesc images = real({4, 3, 5, 20});
  const auto pools_of = [](const Graph& graph) {
    std::string out;
    for (const GraphNode& n : graph.nodes)
      if (n.op->name.starts_with("max_pool")) out += std::string(n.op->name) + " " + n.layer + "\n";
    return out;
  };
  const Graph graph = graph_of(pools, true, images, kTargets, true, true);
  CHECK(pools_of(graph) ==
        "max_pool_bytes a\nmax_pool_bytes b\nmax_pool c\n"
        "max_pool_gradient c\nmax_pool_bytes_gradient b\nmax_pool_bytes_gradient a\n");
  same_results(run(graph, {}), run(graph_of(pools, true, images, kTargets), {}));
  CHECK(pools_of(graph_of(pools, true, images, kTargets, false, true)) ==
        "max_pool_bytes a\nmax_pool_bytes b\nmax_pool c\n");
}

TEST_CASE("fused products have the bits of those apart") {
  same_results(run(graph_of(kProducts, true, kImages, kTargets, true, true), {}),
               run(graph_of(kProducts, true, kImages, kTargets), {}));
}

TEST_CASE("a batch's moments become one with the norm that they are for, with the same bits") {
  const Graph graph = graph_of(kBlock, true, kImages, kTargets, true, true);
  CHECK(
      operators_of(graph).starts_with("batch_norm{relu,training}\n"
                                      "batch_norm{add,relu,training}\n"
                                      "batch_norm{training}\n"
                                      "batch_norm{add,relu,training}\n"
                                      "batch_norm{relu,training}\n"
                                      "batch_norm_backward{relu}\n"));
  for (const GraphNode& n : graph.nodes) {
    CHECK(n.op->name != "channel_sums");
    CHECK(n.op->name != "update_running");
  }
  same_results(run(graph, {}), run(graph_of(kBlock, true, kImages, kTargets), {}));
  // In evaluation the moments are those of before.
  CHECK(operators_of(graph_of("model: [{linear: 3}, batch_norm1d, relu]", true, real({4, 3}),
                              real({4, 3}), false, true)) == "batch_norm{relu}\n");
}

TEST_CASE("batch norm that somebody else reads, too, stays") {
  const TensorDesc rows = real({4, 3});
  // Its relu is one of two readers; it is the output; the sum has three terms.
  CHECK(operators_of(graph_of("model: [{batch_norm1d: null, name: h}, {relu: null, name: y}, "
                              "{add: null, from: [h, y]}, {linear: 3}]",
                              true, rows, rows, false)) == "batch_norm\nrelu\nadd\n");
  CHECK(operators_of(graph_of("model: [{linear: 3}, batch_norm1d]", true, rows, rows, false)) ==
        "batch_norm\n");
  CHECK(operators_of(graph_of("model: [{linear: 3, name: a}, {batch_norm1d: null, name: h}, "
                              "{add: null, from: [a, h, a]}, relu]",
                              true, rows, rows, false)) == "batch_norm\nadd\nadd\nrelu\n");
}

TEST_CASE("evaluation is fused, too") {
  const TensorDesc rows = real({4, 3});
  CHECK(operators_of(graph_of("model: [{linear: 3}, batch_norm1d, relu]", true, rows, rows,
                              false)) == "batch_norm{relu}\n");
}

}  // namespace dpt
