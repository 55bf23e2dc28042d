#include "graph/passes/stages.h"

#include <doctest/doctest.h>

#include "layers/lowered.h"

namespace dpt {
namespace {

Graph placed(const std::string& model) {
  ModelText text(model);
  Graph graph =
      build_graph(text.spec, {.input = real({6, 8}), .target = real({6, 3})}, text.diagnostics);
  REQUIRE_MESSAGE(text.diagnostics.ok(), text.diagnostics.render());
  return graph;
}

std::string stages_of(const Graph& graph) {
  std::string out;
  for (const GraphNode& n : graph.nodes)
    out += std::to_string(n.stage) + std::to_string(home_of(n)) + " " + std::string(n.op->name) +
           " " + graph[n.out[0]].name + "\n";
  return out;
}

TEST_CASE("what another device reads is copied there once, its gradient back") {
  const Graph graph = placed(
      "model: [{linear: 4, name: a}, {linear: 4, name: b, device: 1}, {add: null, from: [a, b]}, "
      "{linear: 3, name: c, device: 0}]");
  CHECK(graph.stage_device == std::vector<int>{0, 1, 0});
  CHECK(stages_of(graph) ==
        "00 linear a.linear\n"
        "11 copy a.linear.on1\n"
        "11 linear b.linear\n"
        "11 add 2.add\n"
        "22 copy 2.add.on0\n"
        "22 linear c.linear\n"
        "22 mse_loss loss.mse_loss\n"
        "22 mse_loss_gradient d c.linear\n"
        "22 matmul d 2.add.on0\n"
        "22 linear_weight_gradient d c.weight\n"
        "22 sum_rows d c.bias\n"
        "21 copy d 2.add\n"
        "11 matmul b.matmul\n"
        "11 linear_weight_gradient d b.weight\n"
        "11 sum_rows d b.bias\n"
        "11 add d a.linear.on1\n"
        "10 copy d a.linear\n"
        "00 linear_weight_gradient d a.weight\n"
        "00 sum_rows d a.bias\n");
}

TEST_CASE("the input and the output go where they are read") {
  const Graph graph = placed(
      "model: [{linear: 3, name: a}, {linear: 3, from: input, name: b, device: 1}, "
      "{add: null, from: [a, b]}, {identity: null, device: 2}]");
  CHECK(graph.stage_device == std::vector<int>{0, 1, 2});
  const std::string text = stages_of(graph);
  CHECK(text.find("11 copy input.on1\n") != std::string::npos);
  CHECK(text.find("22 copy 2.add.on2\n") != std::string::npos);
  CHECK(graph[graph.output].name == "2.add.on2");
}

TEST_CASE("a model on one device has no copies") {
  for (const GraphNode& n : placed("model: [{linear: 3, device: 0}]").nodes)
    CHECK(n.op->name != "copy");
}

}  // namespace
}  // namespace dpt
