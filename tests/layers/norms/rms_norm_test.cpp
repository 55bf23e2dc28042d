#include <doctest/doctest.h>

#include "graph/attrs.h"
#include "layers/lowered.h"

namespace dpt {

TEST_CASE("rms_norm goes over the last extent, with a weight") {
  CHECK(lowered("model: [rms_norm]", real({2, 3, 4})) ==
        "0.rms_norm f32[2, 3, 4] = rms_norm(input, 0.weight)\n");
  CHECK(lowered("model: [{rms_norm: {elementwise_affine: false}}]", real({2, 4})) ==
        "0.rms_norm f32[2, 4] = rms_norm(input)\n");
}

TEST_CASE("rms_norm's eps is float32's precision unless it is given") {
  const auto eps = [](const std::string& layer) {
    ModelText text("model: [" + layer + "]");
    const Graph graph =
        build_graph(text.spec, {.input = real({2, 3, 4}), .loss = false, .differentiate = false},
                    text.diagnostics);
    REQUIRE_MESSAGE(text.diagnostics.ok(), text.diagnostics.render());
    CHECK(graph[graph.parameters.at(0)].origin->init.a == 1);
    return std::any_cast<const RowNorm&>(graph.nodes.at(0).attrs).eps;
  };
  CHECK(eps("rms_norm") == 0x1p-23);
  CHECK(eps("{rms_norm: {eps: 0.1}}") == 0.1);
  CHECK(eps("{rms_norm: {eps: null}}") == 0x1p-23);
}

TEST_CASE("rms_norm as PyTorch") {
  CHECK(torch_layer("model: [rms_norm]", {2, 3, 4}) == "nn.RMSNorm(4)");
  CHECK(torch_layer("model: [{rms_norm: {normalized_shape: [3, 4], eps: 0.001, "
                    "elementwise_affine: false}}]",
                    {2, 3, 4}) == "nn.RMSNorm([3, 4], eps=0.001, elementwise_affine=False)");
}

TEST_CASE("rms_norm refuses extents that are not there") {
  CHECK(complaint(lowered("model: [{rms_norm: 5}]", real({2, 4}))) ==
        "error: rms_norm: normalized_shape [5] does not match the last dimensions of [2, 4]");
  CHECK(complaint(lowered("model: [rms_norm]", real({2}))) ==
        "error: rms_norm takes [N, ..., features], not [2]");
}

}  // namespace dpt
