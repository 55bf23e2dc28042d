#include "graph/passes/widen.h"

#include <algorithm>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "backend/cpu/kernels.h"
#include "graph/interpret.h"
#include "graph/passes/precision.h"
#include "layers/lowered.h"
#include "skip.h"

namespace dpt {
namespace {

Graph emulated(const std::string& model, DType half, TensorDesc x, TensorDesc y) {
  ModelText text(model);
  Graph graph =
      build_graph(text.spec,
                  {.input = x,
                   .target = y,
                   .precision = {.level = PrecisionPolicy::Level::autocast, .half = half}},
                  text.diagnostics);
  REQUIRE_MESSAGE(text.diagnostics.ok(), text.diagnostics.render());
  widen_halves(graph, reference_kernels(), StoredHalves::between_products);
  return graph;
}

// ~: what rounds its result.
std::string nodes_of(const Graph& g) {
  std::string out;
  for (const GraphNode& n : g.nodes)
    out += fmt::format("{}{} ", n.op->name, n.rounds == DType::f32 ? "" : "~");
  return out;
}

// Take halves wherever they are asked.
constexpr KernelType kTakesLinear[] = {{.op = "linear", .name = "halves"}};
constexpr KernelType kTakesRelu[] = {{.op = "relu", .name = "halves"}};
constexpr KernelType kTakesBoth[] = {{.op = "linear", .name = "halves"},
                                     {.op = "relu", .name = "halves"}};

// The model's forward pass in bf16, with kernels that take halves.
Graph forward(const std::string& model, std::span<const KernelType> kernels,
              StoredHalves stored = StoredHalves::between_products) {
  ModelText text(model);
  Graph g = build_graph(text.spec,
                        {.input = real({2, 4}),
                         .target = real({2, 2}),
                         .differentiate = false,
                         .precision = {.level = PrecisionPolicy::Level::autocast}},
                        text.diagnostics);
  widen_halves(g, kernels, stored);
  return g;
}

}  // namespace

TEST_CASE("where no kernel takes halves, results are rounded and stay f32") {
  const Graph g =
      emulated("model: [{linear: 3}, relu, {linear: 2}]", DType::bf16, real({2, 4}), real({2, 2}));
  const std::string nodes = nodes_of(g);
  for (const GraphNode& n : g.nodes) {
    for (ValueId v : n.out) CHECK(g[v].desc.dtype != DType::bf16);
  }
  // The first layer's input, weight, bias, result; and so on.
  CHECK(
      nodes.starts_with("round_to round_to round_to linear~ relu round_to round_to "
                        "linear~ mse_loss mse_loss_gradient round_to "));
  // Kernels of products are told that their factors are rounded, others where all inputs are.
  for (const GraphNode& n : g.nodes) {
    CAPTURE(n.op->name);
    const bool product = n.op->name == "linear" || n.op->name == "matmul" ||
                         n.op->name == "linear_weight_gradient" || n.op->name == "relu";
    CHECK((n.rounded_inputs == DType::bf16) >= product);
    if (n.op->name.starts_with("mse_loss") || n.op->name == "round_to")
      CHECK(n.rounded_inputs == DType::f32);
  }
  // Nothing is rounded twice, and gradients of weights are not rounded.
  CHECK(std::ranges::count_if(g.nodes, [](auto& n) { return n.op->name == "cast"; }) == 0);
  for (ValueId v : g.gradients)
    for (const GraphNode& n : g.nodes)
      if (n.out[0] == v) {
        CHECK(n.op->name != "round_to");
        CHECK(n.rounds == DType::f32);
      }
}

// As in a run: the kernels of this CPU for the operators between two convolutions.
TEST_CASE("images between convolutions of bf16 stay in 16 bits") {
  if (skip_without(refuses_instruction(Bf16Products::automatic).empty(), "a fast VDPBF16PS"))
    return;
  ModelText text(
      "model: [{conv2d: {out_channels: 8, kernel_size: 3}}, {batch_norm2d: null}, relu,"
      " {conv2d: {out_channels: 8, kernel_size: 3}}, relu, {max_pool2d: 2},"
      " {conv2d: {out_channels: 8, kernel_size: 2}}, flatten, {linear: 2}]");
  Graph g = build_graph(text.spec,
                        {.input = real({2, 3, 10, 10}),
                         .target = real({2, 2}),
                         .precision = {.level = PrecisionPolicy::Level::autocast}},
                        text.diagnostics);
  REQUIRE_MESSAGE(text.diagnostics.ok(), text.diagnostics.render());
  widen_halves(g, cpu_kernels(), StoredHalves::between_products);
  int images = 0;
  for (const GraphNode& n : g.nodes) {
    if (n.op->name == "cast" || n.op->is(Trait::view)) continue;
    for (ValueId v : n.out)
      if (g[v].desc.shape.rank() == 4 && g[v].role == Role::activation) {
        CAPTURE(n.op->name);
        CAPTURE(g[v].name);
        const bool weight = n.op->name == "convolution_weight_gradient";
        CHECK((weight || g[v].desc.dtype == DType::bf16 || g[v].desc.dtype == DType::i32));
        images += g[v].desc.dtype == DType::bf16 ? 1 : 0;
      }
  }
  CHECK(images >= 11);
}

TEST_CASE("a result in f32 that only a cast reads is rounded where it is computed") {
  const auto nodes = [](const std::string& model) {
    return nodes_of(emulated(model, DType::bf16, real({2, 4}), real({2, 2})));
  };
  CHECK(nodes("model: [layer_norm, {linear: 2}]")
            .starts_with("layer_norm~ round_to round_to linear~ mse_loss "));
  // What is added to it reads it, too.
  CHECK(nodes("model: [{residual: [layer_norm, {residual: [{linear: 4}]}]}, {linear: 2}]")
            .starts_with("layer_norm round_to round_to round_to linear~ "));
}

TEST_CASE("statistics in f32 do not hide that all other inputs are numbers of a half") {
  const Graph g =
      emulated("model: [{linear: 4}, {multihead_attention: {num_heads: 2, bias: false}}]",
               DType::bf16, real({2, 3, 4}), real({2, 3, 4}));
  int seen = 0;
  for (const GraphNode& n : g.nodes)
    if (n.op->name.starts_with("attention")) {
      CAPTURE(n.op->name);
      CHECK(n.rounded_inputs == DType::bf16);
      ++seen;
    }
  CHECK(seen == 2);
}

TEST_CASE("operators that multiply take halves wherever they can, others between two of these") {
  const std::string model = "model: [{linear: 3}, relu, {linear: 2}]";
  // relu has no 16 bits before it, and is as it would be without its kernel.
  CHECK(nodes_of(forward(model, kTakesRelu)) == nodes_of(forward(model, reference_kernels())));
  CHECK(nodes_of(forward(model, kTakesRelu, StoredHalves::wherever_taken)) ==
        "round_to round_to round_to linear cast relu cast round_to round_to linear~ mse_loss ");
  CHECK(nodes_of(forward(model, kTakesLinear)) ==
        "cast cast cast linear cast relu cast cast cast linear cast mse_loss ");
  const Graph g = forward(model, kTakesBoth);
  CHECK(nodes_of(g) == "cast cast cast linear relu cast cast linear cast mse_loss ");
  for (const GraphNode& n : g.nodes)
    if (n.op->name == "relu") {
      CHECK(g[n.in[0]].desc.dtype == DType::bf16);
      CHECK(g[n.out[0]].desc.dtype == DType::bf16);
    }
}

TEST_CASE("the numbers are those of the operators on halves, each result rounded once") {
  for (const DType half : {DType::bf16, DType::f16}) {
    const Graph g =
        emulated("model: [{linear: 3}, sigmoid, {linear: 2}]", half, real({5, 4}), real({5, 2}));
    std::mt19937 random(3);
    std::vector<HostTensor> values;
    for (const Value& v : g.values) {
      values.emplace_back(v.desc);
      for (size_t i = 0; i < values.back().size(); ++i)
        values.back().set(i, std::uniform_real_distribution<double>(-1, 1)(random));
    }
    values[static_cast<size_t>(g.divisor)].set(0, 10);
    run_graph(g, values, {});
    const auto round = [&](double x) { return double{rounded_to(half, static_cast<float>(x))}; };
    const auto at = [&](ValueId v, size_t i) { return values[static_cast<size_t>(v)].get(i); };
    for (size_t n = 0; n < 5; ++n) {
      double h[3];
      for (size_t j = 0; j < 3; ++j) {
        double sum = round(at(g.parameters[1], j));
        for (size_t k = 0; k < 4; ++k)
          sum += round(at(g.input, n * 4 + k)) * round(at(g.parameters[0], j * 4 + k));
        h[j] = round(1 / (1 + std::exp(-round(sum))));
      }
      for (size_t j = 0; j < 2; ++j) {
        double sum = round(at(g.parameters[3], j));
        for (size_t k = 0; k < 3; ++k) sum += h[k] * round(at(g.parameters[2], j * 3 + k));
        CHECK(at(g.output, n * 2 + j) == round(sum));
      }
    }
  }
}

TEST_CASE("without halves nothing changes") {
  ModelText text("model: [{linear: 3}]");
  Graph g =
      build_graph(text.spec, {.input = real({2, 4}), .target = real({2, 3})}, text.diagnostics);
  const std::string before = g.str();
  widen_halves(g, reference_kernels());
  CHECK(g.str() == before);
}

}  // namespace dpt
