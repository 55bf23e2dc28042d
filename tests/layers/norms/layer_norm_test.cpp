#include <doctest/doctest.h>

#include "graph/attrs.h"
#include "layers/lowered.h"

namespace dpt {

TEST_CASE("layer_norm goes over the last extent, with a weight and a bias") {
  CHECK(lowered("model: [layer_norm]", real({2, 3, 4})) ==
        "0.layer_norm f32[2, 3, 4] = layer_norm(input, 0.weight, 0.bias)\n");
  CHECK(lowered("model: [{layer_norm: {bias: false}}]", real({2, 4})) ==
        "0.layer_norm f32[2, 4] = layer_norm(input, 0.weight)\n");
  CHECK(lowered("model: [{layer_norm: {elementwise_affine: false}}]", real({2, 4})) ==
        "0.layer_norm f32[2, 4] = layer_norm(input)\n");
}

TEST_CASE("layer_norm over several extents, starting as 1 and 0") {
  ModelText text("model: [{layer_norm: {normalized_shape: [3, 4], eps: 0.1}}]");
  const Graph graph =
      build_graph(text.spec, {.input = real({2, 3, 4}), .loss = false, .differentiate = false},
                  text.diagnostics);
  const auto& settings = std::any_cast<const RowNorm&>(graph.nodes.at(0).attrs);
  CHECK(settings.dims == 2);
  CHECK(settings.eps == 0.1);
  const Value &w = graph[graph.parameters[0]], &b = graph[graph.parameters[1]];
  CHECK(w.desc.shape == Shape{3, 4});
  CHECK(w.origin->init.kind == Init::Kind::constant);
  CHECK(w.origin->init.a == 1);
  CHECK(b.origin->init.a == 0);
}

TEST_CASE("layer_norm as PyTorch") {
  CHECK(torch_layer("model: [layer_norm]", {2, 3, 4}) == "nn.LayerNorm(4)");
  CHECK(torch_layer("model: [{layer_norm: {normalized_shape: [3, 4], eps: 0.001, bias: false}}]",
                    {2, 3, 4}) == "nn.LayerNorm([3, 4], eps=0.001, bias=False)");
}

TEST_CASE("layer_norm refuses extents that are not there") {
  CHECK(complaint(lowered("model: [{layer_norm: 5}]", real({2, 4}))) ==
        "error: layer_norm: normalized_shape [5] does not match the last dimensions of [2, 4]");
  CHECK(complaint(lowered("model: [{layer_norm: [2, 4]}]", real({2, 4}))) ==
        "error: layer_norm: normalized_shape [2, 4] does not match the last dimensions of [2, 4]");
}

}  // namespace dpt
