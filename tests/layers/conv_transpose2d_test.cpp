#include <cmath>

#include <doctest/doctest.h>

#include "layers/lowered.h"

namespace dpt {

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
  CHECK(b.init.b == 1 / std::sqrt(12.0));
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

}  // namespace dpt
