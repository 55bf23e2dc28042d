#include <doctest/doctest.h>

#include "graph/attrs.h"
#include "layers/lowered.h"

namespace dpt {

TEST_CASE("avg_pool2d hands its settings to the operator and to PyTorch") {
  ModelText text(
      "model: [{avg_pool2d: {kernel_size: 3, stride: [2, 1], padding: 1, ceil_mode: true, "
      "count_include_pad: false, divisor_override: 5}}]");
  const Graph graph =
      build_graph(text.spec, {.input = real({2, 3, 8, 7}), .loss = false, .differentiate = false},
                  text.diagnostics);
  CHECK(graph.str() == "0.avg_pool f32[2, 3, 5, 7] = avg_pool(input)\n");
  const auto& s = std::any_cast<const Pool&>(graph.nodes.at(0).attrs);
  CHECK(s.window.stride == Pair{2, 1});
  CHECK(s.ceil_mode);
  CHECK_FALSE(s.count_include_pad);
  CHECK(s.divisor_override == 5);
  CHECK(
      torch_layer("model: [{avg_pool2d: {kernel_size: 3, stride: [2, 1], count_include_pad: false, "
                  "divisor_override: 5}}]",
                  {2, 3, 8, 7}) ==
      "nn.AvgPool2d(kernel_size=3, stride=[2, 1], count_include_pad=False, divisor_override=5)");
}

TEST_CASE("avg_pool2d says what it takes") {
  CHECK(complaint(lowered("model: [{avg_pool2d: {kernel_size: 2, divisor_override: 0}}]",
                          real({2, 3, 9, 7}))) ==
        "error: 'divisor_override' must be between 1 and 2^31 - 1");
  CHECK(complaint(lowered("model: [{avg_pool2d: 2}]", real({2, 3, 9}))) ==
        "error: avg_pool2d takes [N, channels, height, width], not [2, 3, 9]: use avg_pool1d");
}

}  // namespace dpt
