#include <doctest/doctest.h>

#include "graph/attrs.h"
#include "layers/lowered.h"

namespace dpt {

TEST_CASE("dropout2d drops channels, and counts among the dropout layers") {
  ModelText text("model: [dropout, {dropout2d: 0.2}]");
  const Graph graph =
      build_graph(text.spec, {.input = real({2, 3, 4, 5}), .loss = false, .differentiate = false},
                  text.diagnostics);
  CHECK(graph.str() ==
        "0.dropout f32[2, 3, 4, 5] = dropout(input)\n"
        "1.dropout f32[2, 3, 4, 5] = dropout{channels}(0.dropout)\n");
  const auto& attrs = std::any_cast<const Dropout&>(graph.nodes[1].attrs);
  CHECK(attrs.p == 0.2);
  CHECK(attrs.key == 1);
  CHECK(attrs.channels);
}

TEST_CASE("dropout2d with torch's masks takes one number for each channel") {
  CHECK(lowered("model: [{dropout2d: 0.1}]", real({2, 3, 4}), {.torch_masks = true}) ==
        "0.masked_channels f32[2, 3, 4] = masked_channels(input, 0.mask)\n");
}

TEST_CASE("dropout2d is nothing in evaluation and with p = 0, and needs no mask with p = 1") {
  CHECK(lowered("model: [dropout2d]", real({2, 3, 4, 5}), {.training = false}).empty());
  CHECK(lowered("model: [{dropout2d: 0}]", real({2, 3, 4, 5})).empty());
  CHECK(lowered("model: [{dropout2d: 1}]", real({2, 3, 4}), {.torch_masks = true}) ==
        "0.dropout f32[2, 3, 4] = dropout{channels}(input)\n");
}

TEST_CASE("dropout2d as PyTorch, whose Dropout2d will not take sequences") {
  CHECK(torch_layer("model: [{dropout2d: 0.25}]", {2, 3, 4, 5}) == "nn.Dropout2d(0.25)");
  CHECK(torch_layer("model: [{dropout2d: 0.25}]", {2, 3, 4}) == "nn.Dropout1d(0.25)");
}

TEST_CASE("dropout2d says what it takes") {
  CHECK(complaint(lowered("model: [dropout2d]", real({2, 3}))) ==
        "error: dropout2d takes [N, channels, ...] with 1 to 3 more dimensions, not [2, 3]: "
        "use dropout");
}

}  // namespace dpt
