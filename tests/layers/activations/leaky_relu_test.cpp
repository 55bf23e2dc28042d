#include <doctest/doctest.h>

#include "graph/attrs.h"
#include "layers/lowered.h"

namespace dpt {

TEST_CASE("leaky_relu hands its settings to the operator and to PyTorch") {
  ModelText text("model: [leaky_relu, {leaky_relu: 0.2}]");
  REQUIRE(text.diagnostics.ok());
  const Graph graph = build_graph(
      text.spec, {.input = real({2, 3}), .loss = false, .differentiate = false}, text.diagnostics);
  CHECK(graph.str() ==
        "0.leaky_relu f32[2, 3] = leaky_relu(input)\n1.leaky_relu f32[2, 3] = "
        "leaky_relu(0.leaky_relu)\n");
  const auto& usual = std::any_cast<const LeakyRelu&>(graph.nodes[0].attrs);
  const auto& given = std::any_cast<const LeakyRelu&>(graph.nodes[1].attrs);
  CHECK(usual.negative_slope == 0.01);
  CHECK(given.negative_slope == 0.2);
  CHECK(torch_layer("model: [leaky_relu]", {2, 3}) == "nn.LeakyReLU()");
  CHECK(torch_layer("model: [{leaky_relu: 0.2}]", {2, 3}) == "nn.LeakyReLU(negative_slope=0.2)");
}

TEST_CASE("leaky_relu refuses a wrong setting") {
  CHECK(complaint(lowered("model: [{leaky_relu: steep}]", real({2, 3}))) ==
        "error: 'negative_slope' must be a number, not 'steep'");
}

}  // namespace dpt
