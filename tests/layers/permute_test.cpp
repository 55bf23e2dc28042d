#include <doctest/doctest.h>

#include "graph/attrs.h"
#include "graph/passes/torch_order.h"
#include "layers/lowered.h"

namespace dpt {

TEST_CASE("permute names the dimensions as torch does, with or without the batch") {
  for (const char* dims : {"[2, 3, 1]", "[0, 2, 3, 1]", "[-2, -1, 1]"}) {
    CAPTURE(dims);
    const std::string model = std::string("model: [{permute: ") + dims + "}]";
    CHECK(lowered(model, real({2, 3, 4, 5})) == "0.permute f32[2, 4, 5, 3] = permute(input)\n");
    CHECK(torch_layer(model, {2, 3, 4, 5}) == "Permute(2, 3, 1)");
  }
  CHECK(lowered("model: [{permute: [1, 2]}]", real({2, 3, 4})).empty());
}

TEST_CASE("permute says what is no order of the dimensions") {
  CHECK(complaint(lowered("model: [{permute: [1, 0]}]", real({2, 3}))) ==
        "error: permute: dims [1, 0] move dimension 0, the batch of the input [2, 3]: it must stay "
        "in front");
  CHECK(complaint(lowered("model: [{permute: [2, 2]}]", real({2, 3, 4}))) ==
        "error: permute: dims [2, 2] must name each of the dimensions 1 to 2 of the input "
        "[2, 3, 4] once");
  CHECK(complaint(lowered("model: [{permute: [1, 3]}]", real({2, 3, 4}))) ==
        "error: permute: dims [1, 3] name dimension 3, but the input [2, 3, 4] has dimensions -3 "
        "to 2");
}

TEST_CASE("masks of torch's generator follow the memory order of permuted values") {
  const auto order = [](const std::string& layers, Shape x) {
    ModelText text("model: [" + layers + "]");
    const Graph graph = build_graph(
        text.spec, {.input = real(x), .loss = false, .differentiate = false}, text.diagnostics);
    REQUIRE_MESSAGE(text.diagnostics.ok(), text.diagnostics.render());
    return torch_order(graph, graph.output);
  };
  using Order = std::vector<int>;
  // The strides that PyTorch 2.15 has, from the largest.
  CHECK(order("{permute: [3, 1, 2]}", {2, 5, 7, 8}) == Order{0, 2, 3, 1});
  CHECK(order("{permute: [3, 1, 2]}, relu, {permute: [2, 3, 1]}", {2, 5, 7, 8}) ==
        Order{0, 1, 2, 3});
  CHECK(order("{permute: [3, 1, 2]}, {conv2d: {out_channels: 6, kernel_size: 3}}", {2, 5, 7, 8}) ==
        Order{0, 2, 3, 1});
  CHECK(order("{permute: [3, 1, 2]}, instance_norm", {2, 5, 7, 8}) == Order{0, 1, 2, 3});
  CHECK(order("{permute: [3, 1, 2]}, {reshape: [8, 35]}", {2, 5, 7, 8}) == Order{0, 2, 1});
  CHECK(order("{permute: [3, 1, 2]}, {reshape: [40, 7]}", {2, 5, 7, 8}) == Order{0, 1, 2});
  CHECK(order("{permute: [3, 1, 2]}, {reshape: [2, 4, 5, 7]}", {2, 5, 7, 8}) ==
        Order{0, 3, 4, 1, 2});
  CHECK(order("{permute: [2, 1]}, {conv1d: {out_channels: 6, kernel_size: 3}}", {2, 5, 7}) ==
        Order{0, 1, 2});
}

}  // namespace dpt
