#include <doctest/doctest.h>

#include "layers/lowered.h"

namespace dpt {
namespace {

Graph trained(const std::string& model, TensorDesc x, TensorDesc t, const std::string& loss,
              Diagnostics& d) {
  static std::vector<std::unique_ptr<ModelText>> texts;  // nodes keep places in them
  texts.push_back(std::make_unique<ModelText>(model, loss));
  REQUIRE_MESSAGE(texts.back()->diagnostics.ok(), texts.back()->diagnostics.render());
  return build_graph(texts.back()->spec, {.input = x, .target = t, .classes = 3}, d);
}

}  // namespace

TEST_CASE("parameters have torch's names: numbers in a list, names where they are given") {
  CHECK(lowered("blocks:\n"
                "  pair: {layers: [{linear: 3, name: a}, {linear: 3}]}\n"
                "model:\n"
                "  - {pair: , name: layer1, repeat: 2}\n"
                "  - pair\n"
                "  - {linear: 2, name: head}",
                real({4, 3})) ==
        "layer1.0.a.linear f32[4, 3] = linear(input, layer1.0.a.weight, layer1.0.a.bias)\n"
        "layer1.0.1.linear f32[4, 3] = linear(layer1.0.a.linear, layer1.0.1.weight, "
        "layer1.0.1.bias)\n"
        "layer1.1.a.linear f32[4, 3] = linear(layer1.0.1.linear, layer1.1.a.weight, "
        "layer1.1.a.bias)\n"
        "layer1.1.1.linear f32[4, 3] = linear(layer1.1.a.linear, layer1.1.1.weight, "
        "layer1.1.1.bias)\n"
        "1.a.linear f32[4, 3] = linear(layer1.1.1.linear, 1.a.weight, 1.a.bias)\n"
        "1.1.linear f32[4, 3] = linear(1.a.linear, 1.1.weight, 1.1.bias)\n"
        "head.linear f32[4, 2] = linear(1.1.linear, head.weight, head.bias)\n");
}

TEST_CASE("a residual adds its input, or what its shortcut makes of it") {
  CHECK(lowered("model: [{residual: {body: [relu, tanh]}, name: r}]", real({4, 3})) ==
        "r.body.0.relu f32[4, 3] = relu(input)\n"
        "r.body.1.tanh f32[4, 3] = tanh(r.body.0.relu)\n"
        "r.add f32[4, 3] = add(r.body.1.tanh, input)\n");
  CHECK(lowered("model: [{residual: {body: [{linear: 2}], shortcut: [{linear: 2}]}}]",
                real({4, 3})) ==
        "0.body.0.linear f32[4, 2] = linear(input, 0.body.0.weight, 0.body.0.bias)\n"
        "0.shortcut.0.linear f32[4, 2] = linear(input, 0.shortcut.0.weight, "
        "0.shortcut.0.bias)\n"
        "0.add f32[4, 2] = add(0.body.0.linear, 0.shortcut.0.linear)\n");
  CHECK(complaint(lowered("model: [{residual: {body: [{linear: 2}]}}]", real({4, 3}))) ==
        "error: the body of this residual outputs [4, 2], but its input, which is added to it, is "
        "[4, 3]");
}

TEST_CASE("from names earlier layers of its list and of the lists around it") {
  CHECK(lowered("model:\n"
                "  - {linear: 3, name: a}\n"
                "  - residual: {body: [{relu: , name: a}, {add: , from: [a, input]}]}\n"
                "  - {tanh: , from: a}",
                real({4, 3})) ==
        "a.linear f32[4, 3] = linear(input, a.weight, a.bias)\n"
        "1.body.a.relu f32[4, 3] = relu(a.linear)\n"
        "1.body.1.add f32[4, 3] = add(1.body.a.relu, input)\n"
        "1.add f32[4, 3] = add(1.body.1.add, a.linear)\n"
        "2.tanh f32[4, 3] = tanh(a.linear)\n");
}

TEST_CASE("from that cannot be followed") {
  CHECK(lowered("model: [{relu: , name: lin1}, {tanh: , from: lin2}]", real({4, 3})) ==
        "t.yaml:1:46: error: unknown layer 'lin2' in 'from'; did you mean 'lin1'?\n"
        "    1 | model: [{relu: , name: lin1}, {tanh: , from: lin2}]\n"
        "      |                                              ^^^^\n");
  CHECK(complaint(lowered("model: [{relu: , from: later}, {tanh: , name: later}]", real({4, 3}))) ==
        "error: 'later' does not come before this layer");
  CHECK(complaint(lowered("model: [{relu: , from: [input, input]}]", real({4, 3}))) ==
        "error: 'relu' takes one value; add and concat take several");
  CHECK(complaint(
            lowered("model: [{residual: {body: [relu]}, from: [input, input]}]", real({4, 3}))) ==
        "error: a residual takes one value; add and concat take several");
}

TEST_CASE("build_graph says what each layer took and gave") {
  ModelText text("model: [flatten, {linear: 4, name: fc}, relu]");
  std::vector<LoweredLayer> layers;
  const Graph graph =
      build_graph(text.spec, {.input = real({2, 3, 5}), .loss = false, .differentiate = false},
                  text.diagnostics, &layers);
  REQUIRE(layers.size() == 3);
  CHECK(layers[1].item == &text.spec.model[1]);
  CHECK(layers[1].name == "fc");
  CHECK(graph[layers[1].in.at(0)].desc.shape == Shape{2, 15});
  CHECK(graph[layers[1].out].desc.shape == Shape{2, 4});
  CHECK(layers[2].out == graph.output);
  CHECK(parameter_count(graph) == 64);
}

TEST_CASE("frozen parameters are there, and have no gradient") {
  Diagnostics d;
  const Graph graph = trained("model: [{linear: 3, name: a, freeze: true}, {linear: 3}]",
                              real({4, 2}), numbers({4}), "cross_entropy", d);
  REQUIRE_MESSAGE(d.ok(), d.render());
  REQUIRE(graph.parameters.size() == 4);
  CHECK(!graph[graph.parameters[0]].trainable);
  CHECK(graph.gradients[0] == kNoValue);
  CHECK(graph[graph.parameters[2]].trainable);
  CHECK(graph.gradients[2] != kNoValue);
  CHECK(parameter_count(graph) == 21);
}

TEST_CASE("freeze holds for all that is in a residual; a model without anything to train") {
  Diagnostics d;
  trained("model: [{residual: {body: [{linear: 3}]}, freeze: true}]", real({4, 3}), numbers({4}),
          "cross_entropy", d);
  CHECK(complaint(d.render()) ==
        "error: nothing to train: the model's output depends on no trainable parameter");
}

TEST_CASE("right answers are counted for evaluation only; targets decide some divisors") {
  ModelText text("model: [{linear: 3}]", "cross_entropy");
  const Graph evaluated = build_graph(
      text.spec, {.input = real({4, 2}), .target = numbers({4}), .differentiate = false},
      text.diagnostics);
  REQUIRE_MESSAGE(text.diagnostics.ok(), text.diagnostics.render());
  CHECK(evaluated.correct != kNoValue);
  Diagnostics d;
  const Graph plain =
      trained("model: [{linear: 3}]", real({4, 2}), numbers({4}), "cross_entropy", d);
  CHECK(plain.correct == kNoValue);  // a training step would pay for what nobody reads
  CHECK(plain.target_weight == kNoValue);
  CHECK(plain.output_gradient != kNoValue);
  const Graph weighted = trained("model: [{linear: 3}]", real({4, 2}), numbers({4}),
                                 "{cross_entropy: {weight: [1, 2, 3]}}", d);
  REQUIRE_MESSAGE(d.ok(), d.render());
  CHECK(weighted.target_weight != kNoValue);
  CHECK(weighted.nodes[1].op->name == "target_weight");
  CHECK(weighted.nodes[1].part == Part::prologue);
}

TEST_CASE("an embedding has a row for each token of the data") {
  const auto why = [](int64_t tokens) {
    ModelText text("model: [{embedding: {num_embeddings: 60, embedding_dim: 2}}]", "mse_loss");
    build_graph(text.spec,
                {.input = numbers({4, 3}),
                 .target = real({4, 3, 2}),
                 .differentiate = false,
                 .tokens = tokens},
                text.diagnostics);
    return text.diagnostics.ok() ? "" : complaint(text.diagnostics.render());
  };
  CHECK(why(60) == "");
  CHECK(why(0) == "");
  CHECK(why(65) ==
        "error: embedding: num_embeddings is 60, but the data has 65 different tokens; write "
        "num_embeddings: 65");
}

TEST_CASE("divisor_of: what targets say comes before what the loss says") {
  const auto divisor = [](const std::string& loss, TensorDesc y, TensorDesc t) {
    ModelText text("model: [identity]", loss);
    const Graph graph =
        build_graph(text.spec, {.input = y, .target = t, .differentiate = false}, text.diagnostics);
    REQUIRE_MESSAGE(text.diagnostics.ok(), text.diagnostics.render());
    return divisor_of(text.spec, graph);
  };
  const char* const weighted = "{cross_entropy: {weight: [1, 2, 3]}}";
  CHECK(divisor("cross_entropy", real({4, 3}), numbers({4})) == Divisor::positions);
  CHECK(divisor(weighted, real({4, 3}), numbers({4})) == Divisor::targets);
  // Probabilities have no weight, whatever their classes weigh.
  CHECK(divisor(weighted, real({4, 3}), real({4, 3})) == Divisor::positions);
  CHECK(divisor("mse_loss", real({4, 3}), real({4, 3})) == Divisor::elements);
  CHECK(divisor("{mse_loss: sum}", real({4, 3}), real({4, 3})) == Divisor::one);
}

TEST_CASE("a mean over places counts those of a sample, whose scores are one term together") {
  CHECK(terms_per_sample(Divisor::positions, {4, 3}) == 1);
  CHECK(terms_per_sample(Divisor::positions, {4, 3, 5, 2}) == 10);
  CHECK(terms_per_sample(Divisor::positions, {4, 5, 2, 3}, 3) == 10);
  CHECK(terms_per_sample(Divisor::elements, {4, 3, 5, 2}) == 30);
  CHECK(terms_per_sample(Divisor::samples, {4, 3, 5, 2}) == 1);
}

TEST_CASE("complaints of the loss stand at the loss") {
  ModelText text("model: [{linear: 2}]", "cross_entropy");
  build_graph(text.spec, {.input = real({4, 2}), .target = numbers({4}), .classes = 3},
              text.diagnostics);
  CHECK(
      text.diagnostics.render() ==
      "t.yaml:2:7: error: cross_entropy: the model outputs 2 scores per sample, but the data has 3 "
      "classes\n"
      "    2 | loss: cross_entropy\n"
      "      |       ^^^^^^^^^^^^^\n");
}

TEST_CASE("one name for two parameters") {
  Spec spec;  // the parser refuses such names already
  ModelText text("model: [{linear: 3}, {linear: 3}]");
  spec.model = text.spec.model;
  spec.model[0].name = spec.model[1].name = "a";
  Diagnostics d;
  build_graph(spec, {.input = real({4, 3}), .loss = false, .differentiate = false}, d);
  CHECK(complaint(d.render()) ==
        "error: two parameters are named 'a.weight'; give the layers different names");
}

}  // namespace dpt
