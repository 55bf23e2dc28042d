#include <doctest/doctest.h>

#include "graph/attrs.h"
#include "layers/lowered.h"

namespace dpt {

TEST_CASE("max_pool1d goes over sequences") {
  CHECK(lowered("model: [{max_pool1d: 2}]", real({2, 3, 9})) ==
        "0.max_pool f32[2, 3, 4] = max_pool(input)\n");
  CHECK(lowered("model: [{max_pool1d: {kernel_size: 3, stride: 2, padding: 1, ceil_mode: true}}]",
                real({2, 3, 8})) == "0.max_pool f32[2, 3, 5] = max_pool(input)\n");
  CHECK(torch_layer("model: [{max_pool1d: {kernel_size: 3, stride: 2, padding: 1, dilation: 2, "
                    "ceil_mode: true}}]",
                    {2, 3, 9}) ==
        "nn.MaxPool1d(kernel_size=3, stride=2, padding=1, dilation=2, ceil_mode=True)");
}

TEST_CASE("max_pool1d says what it takes") {
  CHECK(complaint(lowered("model: [{max_pool1d: 2}]", real({2, 3, 9, 7}))) ==
        "error: max_pool1d takes [N, channels, length], not [2, 3, 9, 7]: use max_pool2d");
  CHECK(complaint(lowered("model: [{max_pool1d: [2, 2]}]", real({2, 3, 9}))) ==
        "error: 'kernel_size' must be one number, not 2");
  CHECK(
      complaint(lowered("model: [{max_pool1d: {kernel_size: 2, padding: 2}}]", real({2, 3, 9}))) ==
      "error: padding 2 is more than half of the 2 that the window covers");
}

TEST_CASE("max_pool2d moves by its own size unless told otherwise") {
  CHECK(lowered("model: [{max_pool2d: 2}]", real({2, 3, 9, 7})) ==
        "0.max_pool f32[2, 3, 4, 3] = max_pool(input)\n");
  CHECK(lowered(
            "model: [{max_pool2d: {kernel_size: [3, 2], stride: 2, padding: 1, ceil_mode: true}}]",
            real({2, 3, 8, 7})) == "0.max_pool f32[2, 3, 5, 4] = max_pool(input)\n");
}

TEST_CASE("max_pool2d as PyTorch") {
  CHECK(torch_layer("model: [{max_pool2d: 2}]", {2, 3, 9, 7}) == "nn.MaxPool2d(kernel_size=2)");
  CHECK(
      torch_layer("model: [{max_pool2d: {kernel_size: [3, 2], stride: 2, padding: 1, dilation: 2, "
                  "ceil_mode: true}}]",
                  {2, 3, 9, 7}) ==
      "nn.MaxPool2d(kernel_size=[3, 2], stride=2, padding=1, dilation=2, ceil_mode=True)");
}

TEST_CASE("max_pool2d says what it takes") {
  CHECK(complaint(
            lowered("model: [{max_pool2d: {kernel_size: 2, padding: 2}}]", real({2, 3, 9, 7}))) ==
        "error: padding 2 is more than half of the 2 that the window covers");
  CHECK(
      complaint(lowered("model: [{max_pool2d: 8}]", real({2, 3, 9, 7}))) ==
      "error: max_pool2d: its window covers 8 elements along the width W, but the padded input [2, "
      "3, 9, 7] has only 7 there; use a smaller kernel_size, or more padding");
}

TEST_CASE("max_pool2d with ceil_mode takes images smaller than its window, as torch does") {
  CHECK(lowered("model: [{max_pool2d: {kernel_size: 4, stride: 3, ceil_mode: true}}]",
                real({2, 3, 3, 2})) == "0.max_pool f32[2, 3, 1, 1] = max_pool(input)\n");
  CHECK(complaint(lowered("model: [{max_pool2d: {kernel_size: 5, stride: 2, ceil_mode: true}}]",
                          real({2, 3, 3, 4}))) ==
        "error: max_pool2d: its window covers 5 elements along the height H, but the padded input "
        "[2, "
        "3, 3, 4] has only 3 there; use a smaller kernel_size, or more padding");
}

TEST_CASE("max_pool3d pools volumes") {
  CHECK(lowered("model: [{max_pool3d: {kernel_size: 2, ceil_mode: true}}]",
                real({2, 3, 5, 4, 6})) == "0.max_pool f32[2, 3, 3, 2, 3] = max_pool(input)\n");
  CHECK(torch_layer(
            "model: [{max_pool3d: {kernel_size: 3, stride: [1, 2, 2], padding: 1, dilation: 2, "
            "ceil_mode: true}}]",
            {2, 3, 9, 9, 9}) ==
        "nn.MaxPool3d(kernel_size=3, stride=[1, 2, 2], padding=1, dilation=2, ceil_mode=True)");
}

TEST_CASE("max_pool3d says what it takes") {
  CHECK(complaint(lowered("model: [{max_pool3d: 2}]", real({2, 3, 9, 7}))) ==
        "error: max_pool3d takes [N, channels, depth, height, width], not [2, 3, 9, 7]: use "
        "max_pool2d");
  CHECK(complaint(lowered("model: [{max_pool3d: {kernel_size: [2, 4, 4], padding: 2}}]",
                          real({2, 3, 9, 9, 9}))) ==
        "error: padding 2 is more than half of the 2 that the window covers");
}

TEST_CASE("avg_pool1d goes over sequences") {
  CHECK(lowered("model: [{avg_pool1d: 2}]", real({2, 3, 9})) ==
        "0.avg_pool f32[2, 3, 4] = avg_pool(input)\n");
  CHECK(torch_layer("model: [{avg_pool1d: {kernel_size: 3, stride: 2, padding: 1, ceil_mode: true, "
                    "count_include_pad: false}}]",
                    {2, 3, 9}) ==
        "nn.AvgPool1d(kernel_size=3, stride=2, padding=1, ceil_mode=True, "
        "count_include_pad=False)");
}

TEST_CASE("avg_pool1d has no divisor_override, as in torch") {
  CHECK(complaint(lowered("model: [{avg_pool1d: {kernel_size: 2, divisor_override: 3}}]",
                          real({2, 3, 9})))
            .find("'divisor_override'") != std::string::npos);
}

TEST_CASE("avg_pool2d hands its settings to the operator and to PyTorch") {
  ModelText text(
      "model: [{avg_pool2d: {kernel_size: 3, stride: [2, 1], padding: 1, ceil_mode: true, "
      "count_include_pad: false, divisor_override: 5}}]");
  const Graph graph =
      build_graph(text.spec, {.input = real({2, 3, 8, 7}), .loss = false, .differentiate = false},
                  text.diagnostics);
  CHECK(graph.str() == "0.avg_pool f32[2, 3, 5, 7] = avg_pool(input)\n");
  const auto& s = std::any_cast<const Pool&>(graph.nodes.at(0).attrs);
  CHECK(s.window.stride == Extents{1, 2, 1});
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

TEST_CASE("avg_pool3d pools volumes") {
  CHECK(lowered("model: [{avg_pool3d: {kernel_size: 2, ceil_mode: true}}]",
                real({2, 3, 5, 4, 6})) == "0.avg_pool f32[2, 3, 3, 2, 3] = avg_pool(input)\n");
  CHECK(torch_layer("model: [{avg_pool3d: {kernel_size: 3, stride: [1, 2, 2], padding: 1, "
                    "count_include_pad: false, divisor_override: 5, "
                    "ceil_mode: true}}]",
                    {2, 3, 9, 9, 9}) ==
        "nn.AvgPool3d(kernel_size=3, stride=[1, 2, 2], padding=1, ceil_mode=True, "
        "count_include_pad=False, "
        "divisor_override=5)");
}

TEST_CASE("avg_pool3d says what it takes") {
  CHECK(complaint(lowered("model: [{avg_pool3d: 2}]", real({2, 3, 9, 7}))) ==
        "error: avg_pool3d takes [N, channels, depth, height, width], not [2, 3, 9, 7]: use "
        "avg_pool2d");
  CHECK(complaint(lowered("model: [{avg_pool3d: {kernel_size: [2, 4, 4], padding: 2}}]",
                          real({2, 3, 9, 9, 9}))) ==
        "error: padding 2 is more than half of the 2 that the window covers");
}

}  // namespace dpt
