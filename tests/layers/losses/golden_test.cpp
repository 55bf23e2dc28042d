// Every loss of tests/fixtures/losses.json with every argument, by the operators' plain loops in
// double: settings, divisor, value and gradient, all the way from what a spec says.
#include "layers/golden.h"

#include <doctest/doctest.h>

namespace dpt {
namespace {

using namespace golden;

// The loss alone is a graph that nothing can train: its parameter is what the model would give.
struct LossGraph {
  Graph graph;
  Divisor divisor = Divisor::one;
  int class_dim = 1;

  LossGraph(const Choice& loss, TensorDesc output, TensorDesc target) {
    GraphBuilder g(graph);
    const auto& type = *static_cast<const LossType*>(loss.what);
    graph.output = g.parameter("output", output.shape, {});
    graph.target = g.input("target", target, Role::target);
    graph.divisor = g.input("divisor", {DType::f32, {1}}, Role::divisor);
    divisor = type.divisor(loss.settings);
    if (type.class_dim) class_dim = type.class_dim(loss.settings, output.shape);
    if (divisor == Divisor::targets) {
      graph.target_weight = type.target_weight(loss.settings, g, graph.target);
      if (graph.target_weight == kNoValue) divisor = Divisor::positions;
    }
    g.part(Part::loss);
    graph.loss = type.build(loss.settings, g, graph.output, graph.target, graph.divisor);
    differentiate(graph);
  }
};

void check_loss(const Node& c) {
  const std::string name = at(c, "loss").text;
  const Tensor input = tensor(at(c, "input")), target = tensor(at(c, "target"));
  Node args = at(c, "args");
  for (Node::Entry& e : args.entries)
    if (e.value.text == ".inf") e.value.quoted = false;  // JSON has no infinity
  Node reduction;
  reduction.kind = Node::Kind::scalar;
  reduction.text = at(c, "reduction").text;
  args.entries.push_back({{"reduction", {}}, reduction});
  const Choice chosen = choice(loss_registry(), name, args);
  const bool classes = static_cast<const LossType*>(chosen.what)->class_dim &&
                       (target.shape != input.shape || name == "multilabel_margin_loss");
  LossGraph loss(chosen, {DType::f32, input.shape},
                 {classes ? DType::i32 : DType::f32, target.shape});
  const Graph& graph = loss.graph;
  std::vector<HostTensor> values = in_double(graph);
  const auto value = [&](ValueId v) -> HostTensor& { return values[static_cast<size_t>(v)]; };
  fill(value(graph.output), input.data);
  fill(value(graph.target), target.data);
  fill(value(graph.divisor), {1});
  run_graph(graph, values);  // for the weight of the targets
  const double weight = graph.target_weight == kNoValue ? 1 : value(graph.target_weight).get(0);
  fill(value(graph.divisor), {divisor_number(loss.divisor, input.shape, weight, loss.class_dim)});
  run_graph(graph, values);
  // The same formulas in double, sums in another order.
  CHECK_MESSAGE(close({value(graph.loss).get(0)}, {number(at(c, "output"))}, 1e-12), name);
  CHECK_MESSAGE(close(content(value(graph.output_gradient)), tensor(at(c, "gradient")).data, 1e-12),
                name);
}

}  // namespace

TEST_CASE("losses give torch's numbers and gradients") {
  const Document fixture = read_fixture("losses");
  int checked = 0;
  for (const Node& c : at(fixture.root, "cases").items) {
    const std::string& name = at(c, "loss").text;
    // torch counts a missing target as ignore_index; a data set here has none that is no class.
    const Tensor target = tensor(at(c, "target"));
    const bool one_class = name == "cross_entropy" && tensor(at(c, "input")).shape == Shape{1, 1};
    if (std::ranges::find(target.data, -100.0) != target.data.end() || one_class) continue;
    INFO(name, " ", at(c, "reduction").text, " line ", at(c, "loss").where.line);
    check_loss(c);
    ++checked;
  }
  CHECK(checked == 409);  // of 419
}

}  // namespace dpt
