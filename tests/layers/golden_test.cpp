// Every layer of tests/fixtures/layers.json, forward and backward, by the operators' plain loops in
// double: what a spec says comes out as what torch computes.
#include "layers/golden.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <doctest/doctest.h>

#include "graph/interpret.h"

namespace dpt {
namespace {

using namespace golden;

// The output of `graph` for an input: fills `values`, whose parameters are there already.
std::vector<double> forward(const Graph& graph, std::vector<HostTensor>& values) {
  run_graph(graph, values);
  return content(values[static_cast<size_t>(graph.output)]);
}

// d loss / d output of a sum of squares is 2 (y - t): targets half of the wanted gradient away give
// just that.
void set_upstream(const Graph& graph, std::vector<HostTensor>& values,
                  const std::vector<double>& upstream) {
  HostTensor& y = values[static_cast<size_t>(graph.output)];
  HostTensor& t = values[static_cast<size_t>(graph.target)];
  for (size_t i = 0; i < upstream.size(); ++i) t.set(i, y.get(i) - upstream[i] / 2);
}

void check_layer(const Node& c) {
  const std::string name = at(c, "layer").text;
  const Tensor input = tensor(at(c, "input")), output = tensor(at(c, "output"));
  const bool indices = name == "embedding";
  // Gradients of the input are those of a table whose rows it is.
  Spec spec;
  spec.loss = choice(loss_registry(), "mse_loss", map({{"reduction", "sum"}}));
  const Shape rows =
      indices ? input.shape
              : Shape(input.shape.extents().first(static_cast<size_t>(input.shape.rank() - 1)));
  if (!indices)
    spec.model.push_back(
        layer("embedding", map({{"num_embeddings", std::to_string(rows.elements())},
                                {"embedding_dim", std::to_string(input.shape.back())}})));
  Node args = at(c, "args");
  for (const char* inferred :
       {"in_features", "in_channels", "embed_dim", "num_features", "num_channels"})
    args = without(args, inferred);
  if (const Node* from = find(c, "from")) {  // of x, the input, and y = tanh(x)
    spec.model.back().name = "x";
    spec.model.push_back(layer("tanh", map({})));
    spec.model.back().name = "y";
    spec.model.push_back(layer(name, args));
    for (const Node& n : from->items) spec.model.back().from.push_back({n.text, {}});
  } else {
    spec.model.push_back(layer(name, args));
  }
  Diagnostics d;
  Graph graph =
      build_graph(spec, {.input = {DType::i32, rows}, .target = {DType::f32, output.shape}}, d);
  REQUIRE_MESSAGE(d.ok(), d.render());
  std::vector<HostTensor> values = in_double(graph);
  std::vector<double> numbers(static_cast<size_t>(rows.elements()));
  std::iota(numbers.begin(), numbers.end(), 0);
  fill(values[static_cast<size_t>(graph.input)], indices ? input.data : numbers);
  fill(values[static_cast<size_t>(graph.divisor)], {1});
  std::vector<std::vector<double>> expected;
  size_t next = 0;
  if (!indices) {
    fill(values[static_cast<size_t>(graph.parameters[next++])], input.data);
    expected.push_back(tensor(at(c, "input_gradient")).data);
  }
  if (const Node* parameters = find(c, "parameters"))
    for (const Node::Entry& p : parameters->entries) {
      fill(values[static_cast<size_t>(graph.parameters.at(next++))], tensor(p.value).data);
      expected.push_back(tensor(at(at(c, "parameter_gradients"), p.key.value)).data);
    }
  REQUIRE(next == graph.parameters.size());

  // Sums of a few terms in another order than torch's; a mean far from 0 (layer_norm) or a large
  // output, from which set_upstream takes a small number, costs as many digits as it has.
  double largest = 100;
  for (double x : input.data) largest = std::max(largest, std::abs(x));
  const double tolerance = 1e-14 * largest;
  CHECK_MESSAGE(close(forward(graph, values), output.data, tolerance), name);
  set_upstream(graph, values, tensor(at(c, "upstream")).data);
  forward(graph, values);
  for (size_t i = 0; i < expected.size(); ++i)
    CHECK_MESSAGE(
        close(content(values[static_cast<size_t>(graph.gradients[i])]), expected[i], tolerance),
        name, " ", graph[graph.parameters[i]].name);
}

}  // namespace

TEST_CASE("layers give torch's numbers and gradients") {
  const Document fixture = read_fixture("layers");
  int checked = 0;
  for (const Node& c : at(fixture.root, "cases").items) {
    const Node* dim = find(at(c, "args"), "dim");
    const bool over_samples = dim && dim->text == "0";
    if (over_samples ||
        (at(at(c, "input"), "shape").items.size() == 1 && at(c, "layer").text != "embedding"))
      continue;  // what has no batch of samples is refused
    check_layer(c);
    ++checked;
  }
  CHECK(checked == 203);  // of 206
}

}  // namespace dpt
