#include "graph/passes/widen.h"

#include <algorithm>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "backend/cpu/kernels.h"
#include "graph/interpret.h"
#include "graph/passes/precision.h"
#include "layers/lowered.h"

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
  widen_halves(graph, reference_kernels());
  return graph;
}

// ~: what rounds its result.
std::string nodes_of(const Graph& g) {
  std::string out;
  for (const GraphNode& n : g.nodes)
    out += fmt::format("{}{} ", n.op->name, n.rounds == DType::f32 ? "" : "~");
  return out;
}

// Takes halves wherever it is asked.
constexpr KernelType kTakesRelu[] = {{.op = "relu", .name = "halves"}};

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

TEST_CASE("where a kernel takes halves they lie as 16 bits before and behind it") {
  ModelText text("model: [{linear: 3}, relu, {linear: 2}]");
  Graph g = build_graph(text.spec,
                        {.input = real({2, 4}),
                         .target = real({2, 2}),
                         .differentiate = false,
                         .precision = {.level = PrecisionPolicy::Level::autocast}},
                        text.diagnostics);
  widen_halves(g, kTakesRelu);
  for (const GraphNode& n : g.nodes)
    if (n.op->name == "relu") {
      CHECK(g[n.in[0]].desc.dtype == DType::bf16);
      CHECK(g[n.out[0]].desc.dtype == DType::bf16);
    }
  CHECK(nodes_of(g) ==
        "round_to round_to round_to linear cast relu cast round_to round_to linear~ mse_loss ");
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
