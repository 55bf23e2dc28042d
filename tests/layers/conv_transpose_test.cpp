#include <cmath>

#include <doctest/doctest.h>

#include "layers/lowered.h"

namespace dpt {

TEST_CASE("conv_transpose1d goes over sequences") {
  CHECK(
      lowered("model: [{conv_transpose1d: {out_channels: 8, kernel_size: 3, stride: 2, padding: 1, "
              "output_padding: 1, groups: 2}}]",
              real({2, 4, 5})) ==
      "0.convolution_transpose f32[2, 8, 10] = convolution_transpose(input, 0.weight, 0.bias)\n");
  CHECK(torch_layer("model: [{conv_transpose1d: {out_channels: 8, kernel_size: 3, stride: 2, "
                    "padding: 1, output_padding: 1, groups: 2}}]",
                    {2, 4, 5}) ==
        "nn.ConvTranspose1d(4, 8, kernel_size=3, stride=2, padding=1, output_padding=1, groups=2)");
}

TEST_CASE("conv_transpose1d says what it takes") {
  CHECK(complaint(lowered("model: [{conv_transpose1d: {out_channels: 8, kernel_size: 3}}]",
                          real({2, 3, 9, 9}))) ==
        "error: conv_transpose1d takes [N, channels, length], not [2, 3, 9, 9]: use "
        "conv_transpose2d");
  CHECK(complaint(lowered("model: [{conv_transpose1d: {out_channels: 8, kernel_size: 3, groups: "
                          "2}}]",
                          real({2, 3, 9}))) ==
        "error: conv_transpose1d: the 3 channels of [2, 3, 9] cannot be divided evenly into 2 "
        "groups");
}

TEST_CASE("conv_transpose2d makes the input that a convolution would make of its output") {
  CHECK(
      lowered("model: [{conv_transpose2d: {out_channels: 6, kernel_size: 3, stride: 2, padding: 1, "
              "output_padding: [1, 0], groups: 2}}]",
              real({2, 4, 5, 7})) ==
      "0.convolution_transpose f32[2, 6, 10, 13] = convolution_transpose(input, 0.weight, "
      "0.bias)\n");
}

TEST_CASE("conv_transpose2d's first weights are torch's, which counts the weight's second extent") {
  ModelText text("model: [{conv_transpose2d: {out_channels: 6, kernel_size: 2, groups: 2}}]");
  const Graph graph =
      build_graph(text.spec, {.input = real({2, 4, 9, 7}), .loss = false, .differentiate = false},
                  text.diagnostics);
  const Value &w = graph[graph.parameters.at(0)], &b = graph[graph.parameters.at(1)];
  CHECK(w.desc.shape == Shape{4, 3, 2, 2});
  CHECK(b.origin->init.b == 1 / std::sqrt(12.0));
}

TEST_CASE("conv_transpose2d as PyTorch") {
  CHECK(torch_layer("model: [{conv_transpose2d: {out_channels: 6, kernel_size: 3, stride: 2, "
                    "padding: 1, output_padding: [1, 0], dilation: 2, bias: false}}]",
                    {2, 4, 5, 7}) ==
        "nn.ConvTranspose2d(4, 6, kernel_size=3, stride=2, padding=1, output_padding=[1, 0], "
        "bias=False, dilation=2)");
}

TEST_CASE("conv_transpose2d says what it takes") {
  const auto said = [](const std::string& settings) {
    return complaint(
        lowered("model: [{conv_transpose2d: {out_channels: 6, kernel_size: 1" + settings + "}}]",
                real({2, 4, 1, 7})));
  };
  CHECK(said(", output_padding: 1") ==
        "error: output_padding must be smaller than stride or dilation, as in torch");
  CHECK(said(", groups: 3") ==
        "error: conv_transpose2d: the 4 channels of [2, 4, 1, 7] cannot be divided evenly into 3 "
        "groups");
  CHECK(said(", padding: 1") ==
        "error: convolution_transpose: the padding leaves nothing of [2, 4, 1, 7]");
}

TEST_CASE("conv_transpose3d is a transposed convolution of volumes") {
  CHECK(lowered("model: [{conv_transpose3d: {out_channels: 4, kernel_size: 2, stride: 2}}]",
                real({2, 3, 5, 4, 3})) ==
        "0.convolution_transpose f32[2, 4, 10, 8, 6] = convolution_transpose(input, 0.weight, "
        "0.bias)\n");
  CHECK(torch_layer("model: [{conv_transpose3d: {out_channels: 4, kernel_size: [1, 3, 3], stride: "
                    "[1, 2, 2], padding: [0, 1, 1], output_padding: [0, 1, 1], bias: false}}]",
                    {2, 3, 5, 4, 3}) ==
        "nn.ConvTranspose3d(3, 4, kernel_size=[1, 3, 3], stride=[1, 2, 2], padding=[0, 1, 1], "
        "output_padding=[0, 1, 1], bias=False)");
}

TEST_CASE("conv_transpose3d says what it takes") {
  CHECK(complaint(lowered("model: [{conv_transpose3d: {out_channels: 4, kernel_size: 2}}]",
                          real({2, 3, 5, 4}))) ==
        "error: conv_transpose3d takes [N, channels, depth, height, width], not [2, 3, 5, 4]: use "
        "conv_transpose2d");
  CHECK(complaint(lowered("model: [{conv_transpose3d: {out_channels: 4, kernel_size: 2, stride: "
                          "[1, 2, 2], output_padding: 1}}]",
                          real({2, 3, 5, 4, 3}))) ==
        "error: output_padding must be smaller than stride or dilation, as in torch");
  CHECK(complaint(lowered("model: [{conv_transpose3d: {out_channels: 4, kernel_size: 1, padding: "
                          "[2, 0, 0]}}]",
                          real({2, 3, 4, 4, 4}))) ==
        "error: convolution_transpose: the padding leaves nothing of [2, 3, 4, 4, 4]");
}

}  // namespace dpt
