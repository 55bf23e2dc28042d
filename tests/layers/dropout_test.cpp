#include <doctest/doctest.h>

#include "graph/attrs.h"
#include "layers/lowered.h"

namespace dpt {

TEST_CASE("dropout in training is an operator with a number of its own for each layer") {
  ModelText text("model: [dropout, relu, {dropout: 0.2}]");
  const Graph graph = build_graph(
      text.spec, {.input = real({2, 3}), .loss = false, .differentiate = false}, text.diagnostics);
  CHECK(graph.str() ==
        "0.dropout f32[2, 3] = dropout(input)\n"
        "1.relu f32[2, 3] = relu(0.dropout)\n"
        "2.dropout f32[2, 3] = dropout(1.relu)\n");
  const auto& first = std::any_cast<const Dropout&>(graph.nodes[0].attrs);
  const auto& second = std::any_cast<const Dropout&>(graph.nodes[2].attrs);
  CHECK(first.p == 0.5);
  CHECK(second.p == 0.2);
  CHECK(first.key == 0);
  CHECK(second.key == 1);
}

TEST_CASE("dropout with torch's masks takes a mask, scaled in f32") {
  ModelText text("model: [{dropout: 0.1}]");
  const Graph graph = build_graph(
      text.spec,
      {.input = real({2, 3}), .mode = {.torch_masks = true}, .loss = false, .differentiate = false},
      text.diagnostics);
  CHECK(graph.str() == "0.masked f32[2, 3] = masked(input, 0.mask)\n");
  CHECK(graph[graph.nodes[0].in[1]].origin->probability == 0.9);
  CHECK(std::any_cast<const Masked&>(graph.nodes[0].attrs).scale == double{1.0F / 0.9F});
}

TEST_CASE("dropout is nothing in evaluation and with p = 0, and needs no mask with p = 1") {
  CHECK(lowered("model: [dropout]", real({2, 3}), {.training = false}).empty());
  CHECK(lowered("model: [{dropout: 0}]", real({2, 3})).empty());
  CHECK(lowered("model: [{dropout: 1}]", real({2, 3}), {.torch_masks = true}) ==
        "0.dropout f32[2, 3] = dropout(input)\n");
}

TEST_CASE("dropout's p is a probability") {
  CHECK(complaint(lowered("model: [{dropout: 1.5}]", real({2, 3}))) ==
        "error: 'p' must be between 0 and 1");
  CHECK(torch_layer("model: [{dropout: 0.25}]", {2, 3}) == "nn.Dropout(0.25)");
}

}  // namespace dpt
