#include <doctest/doctest.h>

#include "graph/attrs.h"
#include "layers/lowered.h"

namespace dpt {

TEST_CASE("instance_norm makes each channel a group") {
  ModelText text("model: [{instance_norm: {eps: 0.1, affine: true}}]");
  const Graph graph =
      build_graph(text.spec, {.input = real({2, 4, 5, 3}), .loss = false, .differentiate = false},
                  text.diagnostics);
  CHECK(graph.str() == "0.group_norm f32[2, 4, 5, 3] = group_norm(input, 0.weight, 0.bias)\n");
  const auto& s = std::any_cast<const RowNorm&>(graph.nodes.at(0).attrs);
  CHECK(s.groups == 4);
  CHECK(s.eps == 0.1);
}

TEST_CASE("instance_norm as PyTorch has a name for each number of extents") {
  CHECK(torch_layer("model: [instance_norm]", {2, 4, 5}) == "nn.InstanceNorm1d(4)");
  CHECK(torch_layer("model: [{instance_norm: {eps: 0.1, affine: true}}]", {2, 4, 5, 3}) ==
        "nn.InstanceNorm2d(4, eps=0.1, affine=True)");
  CHECK(torch_layer("model: [{instance_norm: {eps: 2}}]", {2, 4, 5}) ==
        "nn.InstanceNorm1d(4, eps=2.0)");
}

TEST_CASE("instance_norm needs several elements in a channel") {
  CHECK(complaint(lowered("model: [instance_norm]", real({2, 4, 1, 1}))) ==
        "error: instance_norm: each channel of [2, 4, 1, 1] has one element, so it has no "
        "variance; use layer_norm or group_norm");
  CHECK(complaint(lowered("model: [instance_norm]", real({2, 4}))) ==
        "error: instance_norm takes [N, channels, ...] with 1 to 3 more dimensions, not [2, 4]");
}

}  // namespace dpt
