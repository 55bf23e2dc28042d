#include "graph/passes/recompute.h"

#include <algorithm>

#include <doctest/doctest.h>

#include "backend/cpu/kernels.h"
#include "graph/passes/layouts.h"
#include "graph/program/program.h"
#include "layers/lowered.h"

namespace dpt {
namespace {

Graph graph_of(const std::string& model) {
  ModelText text(model);
  Graph graph =
      build_graph(text.spec, {.input = real({6, 8}), .target = real({6, 3})}, text.diagnostics);
  REQUIRE_MESSAGE(text.diagnostics.ok(), text.diagnostics.render());
  return graph;
}

std::string backward_of(const Graph& graph) {
  std::string out;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const GraphNode& n = graph.nodes[i];
    if (graph.nodes[i].part != Part::backward) continue;
    out += graph[n.out[0]].name + " =";
    for (ValueId v : n.in) out += " " + graph[v].name;
    out += "\n";
  }
  return out;
}

TEST_CASE("gradients read what a range makes again, from the range's input") {
  CHECK(backward_of(graph_of("model: [{linear: 5, name: a}, {sigmoid: null, name: b}, "
                             "{linear: 4, name: c, checkpoint: true}, "
                             "{tanh: null, name: e, checkpoint: true}, {linear: 3, name: f}]")) ==
        "d e.tanh = d f.linear f.weight\n"
        "c.linear again = b.sigmoid c.weight c.bias\n"
        "e.tanh again = c.linear again\n"
        "d f.weight = d f.linear e.tanh again\n"
        "d f.bias = d f.linear\n"
        "d c.linear = e.tanh again d e.tanh\n"
        "d b.sigmoid = d c.linear c.weight\n"
        "d c.weight = d c.linear b.sigmoid\n"
        "d c.bias = d c.linear\n"
        "d a.linear = b.sigmoid d b.sigmoid\n"
        "d a.weight = d a.linear input\n"
        "d a.bias = d a.linear\n");
}

std::string residuals(const std::string& checkpoint) {
  std::string model = "model: [";
  for (int i = 0; i < 12; ++i)
    model += "{residual: {body: [{linear: 8}, gelu, {linear: 8}, tanh]}" + checkpoint + "}, ";
  return model + "{linear: 3}]";
}

size_t kept_by(const std::string& checkpoint, bool fuse) {
  Graph graph = graph_of(residuals(checkpoint));
  choose_layouts(graph);
  const FlatLayout layout = flat_layout(
      graph, fuse ? parameters_with_fusible_gradients(graph, cpu_kernels()) : std::vector<bool>());
  return compile(std::move(graph), cpu_kernels(), layout).arena[0].kept;
}

TEST_CASE("what is computed again is not kept where gradients are stored") {
  CHECK(kept_by(", checkpoint: true", false) < kept_by("", false) / 2);
}

TEST_CASE("recomputation does not decide which gradients are fused, and never needs more memory") {
  const std::vector<bool> fused =
      parameters_with_fusible_gradients(graph_of(residuals("")), cpu_kernels());
  CHECK(std::ranges::count(fused, true) == 25);  // every linear weight
  CHECK(parameters_with_fusible_gradients(graph_of(residuals(", checkpoint: true")),
                                          cpu_kernels()) == fused);
  CHECK(kept_by(", checkpoint: true", true) <= kept_by("", true));
}

}  // namespace
}  // namespace dpt
