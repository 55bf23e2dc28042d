#include <doctest/doctest.h>

#include "layers/lowered.h"

namespace dpt {

TEST_CASE("prelu has one slope, or as many as channels") {
  ModelText text("model: [prelu, {prelu: {num_parameters: 3, init: 0.1}}]");
  const Graph graph =
      build_graph(text.spec, {.input = real({2, 3, 4}), .loss = false, .differentiate = false},
                  text.diagnostics);
  CHECK(graph.str() ==
        "0.prelu f32[2, 3, 4] = prelu(input, 0.weight)\n"
        "1.prelu f32[2, 3, 4] = prelu(0.prelu, 1.weight)\n");
  CHECK(graph[graph.parameters.at(0)].desc.shape == Shape{1});
  CHECK(graph[graph.parameters.at(0)].origin->init.a == 0.25);
  CHECK(graph[graph.parameters.at(1)].desc.shape == Shape{3});
  CHECK(graph[graph.parameters.at(1)].origin->init.a == 0.1);
  CHECK(torch_layer("model: [prelu]", {2, 3}) == "nn.PReLU()");
  CHECK(torch_layer("model: [{prelu: {num_parameters: 3, init: 0.1}}]", {2, 3}) ==
        "nn.PReLU(num_parameters=3, init=0.1)");
  CHECK(complaint(lowered("model: [{prelu: 4}]", real({2, 3, 4}))) ==
        "error: prelu: num_parameters is 4, but the input [2, 3, 4] has 3 channels");
}

}  // namespace dpt
