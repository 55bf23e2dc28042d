#include <doctest/doctest.h>

#include "graph/attrs.h"
#include "layers/lowered.h"

namespace dpt {

TEST_CASE("elu hands its settings to the operator and to PyTorch") {
  ModelText text("model: [elu, {elu: {alpha: 0.5}}]");
  REQUIRE(text.diagnostics.ok());
  const Graph graph = build_graph(
      text.spec, {.input = real({2, 3}), .loss = false, .differentiate = false}, text.diagnostics);
  CHECK(graph.str() == "0.elu f32[2, 3] = elu(input)\n1.elu f32[2, 3] = elu(0.elu)\n");
  const auto& usual = std::any_cast<const Elu&>(graph.nodes[0].attrs);
  const auto& given = std::any_cast<const Elu&>(graph.nodes[1].attrs);
  CHECK(usual.alpha == 1);
  CHECK(given.alpha == 0.5);
  CHECK(torch_layer("model: [elu]", {2, 3}) == "nn.ELU()");
  CHECK(torch_layer("model: [{elu: {alpha: 0.5}}]", {2, 3}) == "nn.ELU(alpha=0.5)");
}

TEST_CASE("elu refuses a wrong setting") {
  CHECK(complaint(lowered("model: [{elu: [1]}]", real({2, 3}))) ==
        "error: 'alpha' must be a number, not a list");
}

}  // namespace dpt
