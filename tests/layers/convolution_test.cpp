#include <cmath>

#include <doctest/doctest.h>

#include "graph/attrs.h"
#include "layers/lowered.h"

namespace dpt {

TEST_CASE("conv1d goes over sequences") {
  CHECK(lowered("model: [{conv1d: {out_channels: 8, kernel_size: 3, stride: 2, padding: 1}}]",
                real({2, 3, 9})) ==
        "0.convolution f32[2, 8, 5] = convolution(input, 0.weight, 0.bias)\n");
  CHECK(torch_layer("model: [{conv1d: {out_channels: 8, kernel_size: [3], padding: valid}}]",
                    {2, 3, 9}) == "nn.Conv1d(3, 8, kernel_size=3, padding=\"valid\")");
}

TEST_CASE("conv1d says what it takes") {
  CHECK(complaint(
            lowered("model: [{conv1d: {out_channels: 8, kernel_size: 3}}]", real({2, 3, 9, 9}))) ==
        "error: conv1d takes [N, channels, length], not [2, 3, 9, 9]: use conv2d");
  CHECK(complaint(lowered("model: [{conv1d: {out_channels: 8, kernel_size: [3, 3]}}]",
                          real({2, 3, 9}))) == "error: 'kernel_size' must be one number, not 2");
}

TEST_CASE("conv1d's padding can be copies of the input") {
  CHECK(lowered("model: [{conv1d: {out_channels: 8, kernel_size: 4, padding: same, padding_mode: "
                "circular}}]",
                real({2, 3, 9})) ==
        "0.pad_inside f32[2, 3, 12] = pad_inside{circular}(input)\n"
        "0.convolution f32[2, 8, 9] = convolution(0.pad_inside, 0.weight, 0.bias)\n");
  CHECK(lowered("model: [{conv1d: {out_channels: 8, kernel_size: 3, padding_mode: reflect}}]",
                real({2, 3, 9})) ==
        "0.convolution f32[2, 8, 7] = convolution(input, 0.weight, 0.bias)\n");
  CHECK(torch_layer("model: [{conv1d: {out_channels: 8, kernel_size: 3, padding: 1, padding_mode: "
                    "replicate}}]",
                    {2, 3, 9}) ==
        "nn.Conv1d(3, 8, kernel_size=3, padding=1, padding_mode=\"replicate\")");
}

TEST_CASE("conv2d's channels come from the graph, its extents from the window") {
  CHECK(lowered("model: [{conv2d: {out_channels: 8, kernel_size: 3}, name: c}]",
                real({2, 3, 9, 7})) ==
        "c.convolution f32[2, 8, 7, 5] = convolution(input, c.weight, c.bias)\n");
  CHECK(
      lowered("model: [{conv2d: {out_channels: 8, kernel_size: [3, 5], stride: 2, padding: [1, 2], "
              "bias: false}}]",
              real({2, 3, 9, 7})) ==
      "0.convolution f32[2, 8, 5, 4] = convolution(input, 0.weight)\n");
  CHECK(
      lowered("model: [{conv2d: {out_channels: 4, kernel_size: [4, 3], dilation: 2, padding: same, "
              "groups: 2}}]",
              real({2, 6, 9, 7})) ==
      "0.convolution f32[2, 4, 9, 7] = convolution(input, 0.weight, 0.bias)\n");
}

TEST_CASE("conv2d's first weights are torch's, over the inputs of one output") {
  ModelText text("model: [{conv2d: {out_channels: 8, kernel_size: [3, 5], groups: 2}}]");
  const Graph graph =
      build_graph(text.spec, {.input = real({2, 4, 9, 7}), .loss = false, .differentiate = false},
                  text.diagnostics);
  REQUIRE(graph.parameters.size() == 2);
  const Value &w = graph[graph.parameters[0]], &b = graph[graph.parameters[1]];
  CHECK(w.desc.shape == Shape{8, 2, 3, 5});
  // Python: math.sqrt(3) * (math.sqrt(2 / (1 + math.sqrt(5) ** 2)) / math.sqrt(30)), all digits.
  CHECK(w.origin->init.b == 0.18257418583505536);
  CHECK(w.origin->init.a == -w.origin->init.b);
  CHECK(b.desc.shape == Shape{8});
  CHECK(b.origin->init.b == 1 / std::sqrt(30.0));
}

TEST_CASE("padding: same puts the odd element behind, as torch does") {
  ModelText text("model: [{conv2d: {out_channels: 1, kernel_size: [4, 3], padding: same}}]");
  const Graph graph =
      build_graph(text.spec, {.input = real({1, 1, 5, 5}), .loss = false, .differentiate = false},
                  text.diagnostics);
  const auto& s = std::any_cast<const Convolution&>(graph.nodes.at(0).attrs);
  CHECK(s.window.before == Extents{0, 1, 1});
  CHECK(s.window.behind == Extents{0, 2, 1});
}

TEST_CASE("conv2d as PyTorch") {
  CHECK(torch_layer("model: [{conv2d: {out_channels: 8, kernel_size: 3}}]", {2, 3, 9, 7}) ==
        "nn.Conv2d(3, 8, kernel_size=3)");
  CHECK(torch_layer("model: [{conv2d: {out_channels: 8, kernel_size: [3, 5], stride: [1, 1], "
                    "padding: same, dilation: 2, groups: 2, bias: false}}]",
                    {2, 4, 9, 7}) ==
        "nn.Conv2d(4, 8, kernel_size=[3, 5], padding=\"same\", dilation=2, groups=2, "
        "bias=False)");
}

TEST_CASE("conv2d says what it takes") {
  const auto said = [](const std::string& settings, Shape x = {2, 3, 9, 7}) {
    return complaint(
        lowered("model: [{conv2d: {out_channels: 8, kernel_size: 3" + settings + "}}]", real(x)));
  };
  CHECK(said("", {2, 28, 28}) ==
        "error: conv2d takes [N, channels, height, width], not [2, 28, 28]: use conv1d, or for "
        "gray images `reshape: [1, 28, 28]` before it");
  CHECK(said("", {2, 784}) == "error: conv2d takes [N, channels, height, width], not [2, 784]");
  CHECK(complaint(lowered("model: [{conv2d: {out_channels: 8, kernel_size: 3}}]",
                          numbers({2, 3, 9, 7}))) ==
        "error: conv2d takes real numbers (f32), not i32[2, 3, 9, 7]: put an embedding before it?");
  CHECK(
      said(", dilation: 4") ==
      "error: conv2d: its window covers 9 elements along the width W, but the padded input [2, 3, "
      "9, 7] has only 7 there; use a smaller kernel_size or dilation, or more padding");
  CHECK(said(", groups: 2") ==
        "error: conv2d: the 3 channels of [2, 3, 9, 7] cannot be divided evenly into 2 groups");
  CHECK(said(", groups: 3") == "error: out_channels 8 is not divisible by groups 3");
  CHECK(said(", stride: [1, 2, 3]") ==
        "error: 'stride' must be one number, or 2 (height, width), not 3");
  CHECK(said(", padding: same, stride: 2") == "error: padding: same needs stride 1, as in torch");
  CHECK(said(", padding: full") ==
        "error: 'padding' must be an integer, a list of them, same or valid, not 'full'");
  CHECK(said(", padding: -1") == "error: 'padding' must be between 0 and 2^31 - 1");
  CHECK(said(", padding: [1, x]") == "error: 'padding' must be an integer, not 'x'");
  CHECK(said(", padding_mode: mirror") ==
        "error: unknown word 'mirror' for 'padding_mode'; known: zeros, reflect, replicate, "
        "circular");
}

TEST_CASE("conv2d's padding can be copies of the input") {
  CHECK(lowered("model: [{conv2d: {out_channels: 8, kernel_size: 3, padding: [1, 2], padding_mode: "
                "reflect}}]",
                real({2, 3, 5, 6})) ==
        "0.pad_inside f32[2, 3, 7, 10] = pad_inside{reflect}(input)\n"
        "0.convolution f32[2, 8, 5, 8] = convolution(0.pad_inside, 0.weight, 0.bias)\n");
  CHECK(complaint(lowered("model: [{conv2d: {out_channels: 8, kernel_size: 9, padding: 4, "
                          "padding_mode: reflect}}]",
                          real({2, 3, 8, 4}))) ==
        "error: conv2d: padding_mode reflect cannot add 4 elements to the width W of [2, 3, 8, 4], "
        "which has 4; use less padding, or replicate");
}

TEST_CASE("conv3d is a convolution of volumes") {
  CHECK(lowered("model: [{conv3d: {out_channels: 8, kernel_size: 3, stride: 2, padding: 1}}]",
                real({2, 3, 9, 7, 5})) ==
        "0.convolution f32[2, 8, 5, 4, 3] = convolution(input, 0.weight, 0.bias)\n");
  CHECK(torch_layer("model: [{conv3d: {out_channels: 9, kernel_size: [1, 3, 3], padding: [0, 1, 1],"
                    " groups: 3}}]",
                    {2, 6, 9, 7, 5}) ==
        "nn.Conv3d(6, 9, kernel_size=[1, 3, 3], padding=[0, 1, 1], groups=3)");
}

TEST_CASE("conv3d's weight has PyTorch's shape") {
  const ModelText text("model: [{conv3d: {out_channels: 8, kernel_size: [2, 3, 4]}}]");
  Diagnostics d;
  const Graph graph = build_graph(
      text.spec, {.input = real({1, 3, 4, 4, 4}), .loss = false, .differentiate = false}, d);
  const Value& weight = graph[graph.parameters.at(0)];
  CHECK(weight.desc.shape == Shape{8, 3, 2, 3, 4});
  CHECK(graph[graph.parameters.at(1)].desc.shape == Shape{8});
}

TEST_CASE("conv3d's padding can be copies of the input") {
  CHECK(lowered("model: [{conv3d: {out_channels: 2, kernel_size: 3, padding: same, padding_mode: "
                "circular}}]",
                real({2, 3, 4, 5, 6})) ==
        "0.pad_inside f32[2, 3, 6, 7, 8] = pad_inside{circular}(input)\n"
        "0.convolution f32[2, 2, 4, 5, 6] = convolution(0.pad_inside, 0.weight, 0.bias)\n");
}

TEST_CASE("conv3d says what it takes") {
  CHECK(complaint(
            lowered("model: [{conv3d: {out_channels: 8, kernel_size: 3}}]", real({2, 3, 9, 9}))) ==
        "error: conv3d takes [N, channels, depth, height, width], not [2, 3, 9, 9]: use conv2d");
  CHECK(
      complaint(
          lowered("model: [{conv3d: {out_channels: 8, kernel_size: 3}}]", real({2, 3, 2, 9, 9}))) ==
      "error: conv3d: its window covers 3 elements along the depth D, but the padded input [2, 3, "
      "2, 9, 9] has only 2 there; use a smaller kernel_size, or more padding");
  CHECK(complaint(lowered("model: [{conv3d: {out_channels: 8, kernel_size: [1, 5, 3]}}]",
                          real({2, 3, 2, 4, 9}))) ==
        "error: conv3d: its window covers 5 elements along the height H, but the padded input [2, "
        "3, 2, 4, 9] has only 4 there; use a smaller kernel_size, or more padding");
  CHECK(complaint(lowered("model: [{conv3d: {out_channels: 8, kernel_size: [3, 3]}}]",
                          real({2, 3, 9, 9, 9}))) ==
        "error: 'kernel_size' must be one number, or 3 (depth, height, width), not 2");
  CHECK(complaint(lowered("model: [{conv3d: {out_channels: 8, kernel_size: 3, padding: 3, "
                          "padding_mode: reflect}}]",
                          real({2, 3, 3, 9, 9}))) ==
        "error: conv3d: padding_mode reflect cannot add 3 elements to the depth D of [2, 3, 3, 9, "
        "9], which has 3; use less padding, or replicate");
}

}  // namespace dpt
