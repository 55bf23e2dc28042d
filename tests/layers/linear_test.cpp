#include <doctest/doctest.h>

#include "layers/lowered.h"

namespace dpt {

TEST_CASE("linear maps the last extent; its size comes from the graph") {
  CHECK(lowered("model: [{linear: 10, name: fc}]", real({32, 784})) ==
        "fc.linear f32[32, 10] = linear(input, fc.weight, fc.bias)\n");
  CHECK(lowered("model: [{linear: {out_features: 10, bias: false}}]", real({2, 7, 3})) ==
        "0.linear f32[2, 7, 10] = linear(input, 0.weight)\n");
}

TEST_CASE("linear's first weights are torch's, weight before bias") {
  ModelText text("model: [{linear: 10}]");
  const Graph graph =
      build_graph(text.spec, {.input = real({2, 784}), .loss = false, .differentiate = false},
                  text.diagnostics);
  REQUIRE(graph.parameters.size() == 2);
  const Value &w = graph[graph.parameters[0]], &b = graph[graph.parameters[1]];
  CHECK(w.name == "0.weight");
  CHECK(w.desc.shape == Shape{10, 784});
  CHECK(w.origin->init.kind == Init::Kind::uniform);
  // Python: math.sqrt(3) * (math.sqrt(2 / (1 + math.sqrt(5) ** 2)) / math.sqrt(784)), all digits.
  CHECK(w.origin->init.b == 0.03571428571428571);
  CHECK(w.origin->init.a == -w.origin->init.b);
  CHECK(b.desc.shape == Shape{10});
  CHECK(b.origin->init.b == 1.0 / 28);
}

TEST_CASE("linear as PyTorch") {
  CHECK(torch_layer("model: [{linear: 10}]", {2, 5}) == "nn.Linear(5, 10)");
  CHECK(torch_layer("model: [{linear: {out_features: 10, bias: false}}]", {2, 5}) ==
        "nn.Linear(5, 10, bias=False)");
}

TEST_CASE("linear says what it takes, at its place in the spec") {
  CHECK(lowered("model: [identity, {linear: 10}]", numbers({32, 5})) ==
        "t.yaml:1:20: error: linear takes real numbers (f32), not i32[32, 5]: put an embedding "
        "before it?\n"
        "    1 | model: [identity, {linear: 10}]\n"
        "      |                    ^^^^^^\n");
  CHECK(complaint(lowered("model: [{linear: 10}]", real({32}))) ==
        "error: linear takes [N, ..., features], not [32]: put `reshape: [1]` before it?");
  CHECK(complaint(lowered("model: [{linear: 0}]", real({32, 2}))) ==
        "error: 'out_features' must be between 1 and 2^31 - 1");
}

}  // namespace dpt
