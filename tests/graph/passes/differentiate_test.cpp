#include <doctest/doctest.h>

#include "base/error.h"
#include "graph/attrs.h"
#include "graph/interpret.h"

namespace dpt {
namespace {

// A graph that is built like a model's: input x, layers by `body`, then mse_loss.
struct Built {
  Graph graph;
  GraphBuilder g{graph};

  explicit Built(Shape x) { graph.input = g.input("x", {DType::f32, x}); }

  ValueId linear(const char* name, ValueId x, int64_t out, bool trainable = true) {
    g.enter(name, {}, trainable);
    const Init init{.kind = Init::Kind::uniform, .a = -1, .b = 1};
    const ValueId w = g.parameter("weight", {out, g.shape(x).back()}, init);
    return g.apply("linear", {x, w, g.parameter("bias", {out}, init)});
  }
  ValueId apply(const char* name, const char* op, std::vector<ValueId> in, std::any attrs = {}) {
    g.enter(name, {});
    return g.apply(op, std::move(in), std::move(attrs));
  }
  void finish(ValueId output) {
    g.enter("loss", {});
    g.part(Part::loss);
    graph.output = output;
    graph.target = g.input("target", g.desc(output), Role::target);
    graph.divisor = g.input("divisor", {DType::f32, {1}}, Role::divisor);
    graph.loss = g.apply("mse_loss", {output, graph.target, graph.divisor});
    differentiate(graph);
  }
  // The text of what differentiate added.
  std::string added() const {
    const std::string all = graph.str();
    return all.substr(all.find('\n', all.find("loss.mse_loss f64")) + 1);
  }
};

std::string error_of(Built& b, ValueId output) {
  try {
    b.finish(output);
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

}  // namespace

TEST_CASE("two layers: gradients in reverse order, none for the input") {
  Built b({4, 3});
  const ValueId h = b.apply("act", "sigmoid", {b.linear("lin1", b.graph.input, 5)});
  b.finish(b.linear("lin2", h, 2));
  CHECK(b.added() ==
        "d lin2.linear f32[4, 2] = mse_loss_gradient(lin2.linear, target, divisor)\n"
        "d act.sigmoid f32[4, 5] = matmul(d lin2.linear, lin2.weight)\n"
        "d lin2.weight f32[2, 5] = linear_weight_gradient(d lin2.linear, act.sigmoid)\n"
        "d lin2.bias f32[2] = sum_rows(d lin2.linear)\n"
        "d lin1.linear f32[4, 5] = sigmoid_gradient(act.sigmoid, d act.sigmoid)\n"
        "d lin1.weight f32[5, 3] = linear_weight_gradient(d lin1.linear, x)\n"
        "d lin1.bias f32[5] = sum_rows(d lin1.linear)\n");
  CHECK(b.graph[b.graph.output_gradient].name == "d lin2.linear");
  REQUIRE(b.graph.gradients.size() == 4);
  for (size_t i = 0; i < 4; ++i) {
    const Value &p = b.graph[b.graph.parameters[i]], &d = b.graph[b.graph.gradients[i]];
    CHECK(d.name == "d " + p.name);
    CHECK(d.desc == p.desc);
  }
  CHECK(b.graph.nodes[4].part == Part::loss);  // d lin2.linear
  CHECK(b.graph.nodes[5].part == Part::backward);
  CHECK(b.graph.nodes[5].layer == "lin2");
}

TEST_CASE("nothing is left of what was not needed") {
  Built b({4, 3});
  b.finish(b.linear("lin1", b.graph.input, 2));
  // x, two parameters, y, target, divisor, loss, and the gradients of y, weight and bias.
  CHECK(b.graph.values.size() == 10);
  for (const GraphNode& n : b.graph.nodes)
    for (ValueId v : n.out) CHECK(v < 10);
}

TEST_CASE("several uses of a value are summed in the order of the uses") {
  Built b({4, 3});
  const ValueId h = b.linear("lin1", b.graph.input, 3);
  const ValueId left = b.apply("left", "tanh", {h});
  b.finish(b.apply("sum", "add", {left, h}));
  CHECK(b.added() ==
        "d sum.add f32[4, 3] = mse_loss_gradient(sum.add, target, divisor)\n"
        "left.tanh_gradient f32[4, 3] = tanh_gradient(left.tanh, d sum.add)\n"
        "d lin1.linear f32[4, 3] = add(left.tanh_gradient, d sum.add)\n"
        "d lin1.weight f32[3, 3] = linear_weight_gradient(d lin1.linear, x)\n"
        "d lin1.bias f32[3] = sum_rows(d lin1.linear)\n");
}

TEST_CASE("views go backward as views, concat as slices") {
  Built b({4, 3});
  const ValueId h = b.linear("lin1", b.graph.input, 6);
  const ValueId v = b.apply("view", "reshape", {h}, Reshape{{4, 2, 3}});
  b.finish(b.apply("cat", "concat", {v, v}, Concat{2}));
  CHECK(b.added() ==
        "d cat.concat f32[4, 2, 6] = mse_loss_gradient(cat.concat, target, divisor)\n"
        "cat.slice f32[4, 2, 3] = slice(d cat.concat)\n"
        "cat.slice f32[4, 2, 3] = slice(d cat.concat)\n"
        "d view.reshape f32[4, 2, 3] = add(cat.slice, cat.slice)\n"
        "d lin1.linear f32[4, 6] = reshape(d view.reshape)\n"
        "d lin1.weight f32[6, 3] = linear_weight_gradient(d lin1.linear, x)\n"
        "d lin1.bias f32[6] = sum_rows(d lin1.linear)\n");
}

TEST_CASE("frozen layers have no gradient, and nothing goes through those below all trainable") {
  Built b({4, 3});
  const ValueId h = b.apply("act", "tanh", {b.linear("lin1", b.graph.input, 5, false)});
  b.finish(b.linear("lin2", h, 2));
  CHECK(b.added() ==
        "d lin2.linear f32[4, 2] = mse_loss_gradient(lin2.linear, target, divisor)\n"
        "d lin2.weight f32[2, 5] = linear_weight_gradient(d lin2.linear, act.tanh)\n"
        "d lin2.bias f32[2] = sum_rows(d lin2.linear)\n");
  CHECK(b.graph.gradients[0] == kNoValue);
  CHECK(b.graph.gradients[1] == kNoValue);
  CHECK(b.graph.gradients[2] != kNoValue);
}

TEST_CASE("a frozen layer above a trainable one passes gradients through") {
  Built b({4, 3});
  b.finish(b.linear("lin2", b.linear("lin1", b.graph.input, 5), 2, false));
  CHECK(b.added() ==
        "d lin2.linear f32[4, 2] = mse_loss_gradient(lin2.linear, target, divisor)\n"
        "d lin1.linear f32[4, 5] = matmul(d lin2.linear, lin2.weight)\n"
        "d lin1.weight f32[5, 3] = linear_weight_gradient(d lin1.linear, x)\n"
        "d lin1.bias f32[5] = sum_rows(d lin1.linear)\n");
}

TEST_CASE("operators of the loss before the last one have their gradients there too") {
  Built b({4, 3});
  const ValueId out = b.linear("lin1", b.graph.input, 3);
  b.g.enter("loss", {});
  b.g.part(Part::loss);
  b.graph.output = out;
  b.graph.target = b.g.input("target", {DType::i32, {4}}, Role::target);
  b.graph.divisor = b.g.input("divisor", {DType::f32, {1}}, Role::divisor);
  const ValueId lp = b.g.apply("log_softmax", {out}, Softmax{1});
  b.graph.loss = b.g.apply("nll_loss", {lp, b.graph.target, b.graph.divisor}, NllLoss{});
  b.graph.correct = b.g.apply("count_correct", {out, b.graph.target});
  differentiate(b.graph);
  CHECK(b.graph[b.graph.output_gradient].name == "d lin1.linear");
  for (size_t i = 1; i < b.graph.nodes.size(); ++i)
    CHECK((b.graph.nodes[i].part == Part::loss) == (i <= 5));
}

TEST_CASE("what cannot be trained is an error that says why") {
  Built none({4, 3});
  CHECK(error_of(none, none.apply("act", "relu", {none.graph.input})) ==
        "nothing to train: the model's output depends on no trainable parameter");
  Built frozen({4, 3});
  CHECK(error_of(frozen, frozen.linear("lin1", frozen.graph.input, 3, false)) ==
        "nothing to train: the model's output depends on no trainable parameter");
  Built unused({4, 3});
  unused.linear("lin1", unused.graph.input, 3);
  CHECK(error_of(unused, unused.linear("lin2", unused.graph.input, 3)) ==
        "the loss does not depend on parameter 'lin1.weight'; freeze it or use its layer");
}

TEST_CASE("a whole model's gradients agree with central differences") {
  Built b({5, 4});
  const ValueId h = b.apply("act", "gelu", {b.linear("lin1", b.graph.input, 6)});
  const ValueId drop = b.apply("drop", "dropout", {h}, Dropout{.p = 0.3, .key = 1});
  b.g.enter("norm", {});
  const ValueId w = b.g.parameter("weight", {6}, {}), bias = b.g.parameter("bias", {6}, {});
  const ValueId normed = b.g.apply("layer_norm", {drop, w, bias}, RowNorm{});
  b.finish(b.linear("lin2", b.apply("sum", "add", {normed, h}), 3));

  // The same graph in double.
  for (Value& v : b.graph.values) v.desc.dtype = DType::f64;
  std::vector<HostTensor> values;
  std::mt19937 random(5);
  for (const Value& v : b.graph.values) {
    values.emplace_back(v.desc);
    for (size_t i = 0; i < values.back().size(); ++i)
      values.back().set(i, std::uniform_real_distribution<double>(-1, 1)(random));
  }
  const auto at = [&](ValueId v) -> HostTensor& { return values[static_cast<size_t>(v)]; };
  at(b.graph.divisor).set(0, 3);
  const StepContext context{.seed = 1, .step = 2};
  run_graph(b.graph, values, context);
  std::vector<std::vector<double>> gradients;
  for (ValueId d : b.graph.gradients) {
    gradients.emplace_back();
    for (size_t i = 0; i < at(d).size(); ++i) gradients.back().push_back(at(d).get(i));
  }
  const auto loss_with = [&](HostTensor& p, size_t i, double x) {
    p.set(i, x);
    run_graph(b.graph, values, context);
    return at(b.graph.loss).get(0);
  };
  for (size_t k = 0; k < gradients.size(); ++k) {
    HostTensor& p = at(b.graph.parameters[k]);
    for (size_t i = 0; i < p.size(); ++i) {
      const double x = p.get(i), h2 = 1e-6;
      const double slope = (loss_with(p, i, x + h2) - loss_with(p, i, x - h2)) / (2 * h2);
      p.set(i, x);
      INFO(b.graph[b.graph.parameters[k]].name, " element ", i);
      // 1e-7: cancellation in the difference, 1e-16 / 1e-6, times the number of terms.
      CHECK(std::abs(gradients[k][i] - slope) <= 1e-7);
    }
  }
}

}  // namespace dpt
