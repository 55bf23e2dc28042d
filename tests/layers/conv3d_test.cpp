#include <doctest/doctest.h>

#include "layers/lowered.h"

namespace dpt {

TEST_CASE("conv3d is a convolution of the images that its windows read") {
  CHECK(lowered("model: [{conv3d: {out_channels: 8, kernel_size: 3, stride: 2, padding: 1}}]",
                real({2, 3, 9, 7, 5})) ==
        "0.unfold_depth f32[10, 9, 7, 5] = unfold_depth(input)\n"
        "0.convolution f32[10, 8, 4, 3] = convolution(0.unfold_depth, 0.weight, 0.bias)\n"
        "0.fold_depth f32[2, 8, 5, 4, 3] = fold_depth(0.convolution)\n");
  CHECK(torch_layer("model: [{conv3d: {out_channels: 9, kernel_size: [1, 3, 3], padding: [0, 1, 1],"
                    " groups: 3}}]",
                    {2, 6, 9, 7, 5}) ==
        "nn.Conv3d(6, 9, kernel_size=[1, 3, 3], padding=[0, 1, 1], groups=3)");
}

TEST_CASE("conv3d's weight has PyTorch's shape in files, and its fan in initializations") {
  const ModelText text("model: [{conv3d: {out_channels: 8, kernel_size: [2, 3, 4]}}]");
  Diagnostics d;
  const Graph graph = build_graph(
      text.spec, {.input = real({1, 3, 4, 4, 4}), .loss = false, .differentiate = false}, d);
  const Value& weight = graph[graph.parameters.at(0)];
  CHECK(weight.desc.shape == Shape{8, 6, 3, 4});
  CHECK(weight.shape_in_files() == Shape{8, 3, 2, 3, 4});
  CHECK(graph[graph.parameters.at(1)].shape_in_files() == Shape{8});
}

TEST_CASE("conv3d's padding can be copies of the input") {
  CHECK(lowered("model: [{conv3d: {out_channels: 2, kernel_size: 3, padding: same, padding_mode: "
                "circular}}]",
                real({2, 3, 4, 5, 6})) ==
        "0.unfold_depth f32[8, 3, 5, 6] = unfold_depth(input)\n"
        "0.pad_inside f32[8, 3, 7, 8] = pad_inside{circular}(0.unfold_depth)\n"
        "0.fold_depth f32[2, 3, 4, 7, 8] = fold_depth(0.pad_inside)\n"
        "0.reshape f32[2, 3, 4, 56] = reshape(0.fold_depth)\n"
        "0.pad_inside f32[2, 3, 6, 56] = pad_inside{circular}(0.reshape)\n"
        "0.reshape f32[2, 3, 6, 7, 8] = reshape(0.pad_inside)\n"
        "0.unfold_depth f32[8, 9, 7, 8] = unfold_depth(0.reshape)\n"
        "0.convolution f32[8, 2, 5, 6] = convolution(0.unfold_depth, 0.weight, 0.bias)\n"
        "0.fold_depth f32[2, 2, 4, 5, 6] = fold_depth(0.convolution)\n");
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
