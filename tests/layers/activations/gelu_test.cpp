#include <doctest/doctest.h>

#include "layers/lowered.h"

namespace dpt {

TEST_CASE("gelu hands its settings to the operator and to PyTorch") {
  ModelText text("model: [gelu, {gelu: tanh}]");
  REQUIRE(text.diagnostics.ok());
  const Graph graph = build_graph(
      text.spec, {.input = real({2, 3}), .loss = false, .differentiate = false}, text.diagnostics);
  CHECK(graph.str() ==
        "0.gelu f32[2, 3] = gelu(input)\n1.gelu_tanh f32[2, 3] = gelu_tanh(0.gelu)\n");
  CHECK(torch_layer("model: [gelu]", {2, 3}) == "nn.GELU()");
  CHECK(torch_layer("model: [{gelu: tanh}]", {2, 3}) == "nn.GELU(approximate=\"tanh\")");
}

TEST_CASE("gelu refuses a wrong setting") {
  CHECK(complaint(lowered("model: [{gelu: tan}]", real({2, 3}))) ==
        "error: unknown word 'tan' for 'approximate'; did you mean 'tanh'?");
}

}  // namespace dpt
