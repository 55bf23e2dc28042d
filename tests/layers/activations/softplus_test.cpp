#include <doctest/doctest.h>

#include "graph/attrs.h"
#include "layers/lowered.h"

namespace dpt {

TEST_CASE("softplus hands its settings to the operator and to PyTorch") {
  ModelText text("model: [softplus, {softplus: {beta: 2, threshold: 5}}]");
  REQUIRE(text.diagnostics.ok());
  const Graph graph = build_graph(
      text.spec, {.input = real({2, 3}), .loss = false, .differentiate = false}, text.diagnostics);
  CHECK(graph.str() ==
        "0.softplus f32[2, 3] = softplus(input)\n1.softplus f32[2, 3] = softplus(0.softplus)\n");
  const auto& usual = std::any_cast<const Softplus&>(graph.nodes[0].attrs);
  const auto& given = std::any_cast<const Softplus&>(graph.nodes[1].attrs);
  CHECK(usual.beta == 1);
  CHECK(usual.threshold == 20);
  CHECK(given.beta == 2);
  CHECK(given.threshold == 5);
  CHECK(torch_layer("model: [softplus]", {2, 3}) == "nn.Softplus()");
  CHECK(torch_layer("model: [{softplus: {beta: 2, threshold: 5}}]", {2, 3}) ==
        "nn.Softplus(beta=2.0, threshold=5.0)");
}

TEST_CASE("softplus refuses a wrong setting") {
  CHECK(complaint(lowered("model: [{softplus: 0}]", real({2, 3}))) ==
        "error: 'beta' must be positive");
}

}  // namespace dpt
