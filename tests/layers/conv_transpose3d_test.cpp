#include <doctest/doctest.h>

#include "layers/lowered.h"

namespace dpt {

TEST_CASE("conv_transpose3d sums the images of a transposed convolution") {
  CHECK(lowered("model: [{conv_transpose3d: {out_channels: 4, kernel_size: 2, stride: 2}}]",
                real({2, 3, 5, 4, 3})) ==
        "0.unfold_depth f32[10, 3, 4, 3] = unfold_depth(input)\n"
        "0.convolution_transpose f32[10, 8, 8, 6] = convolution_transpose(0.unfold_depth, "
        "0.weight)\n"
        "0.fold_depth f32[2, 4, 10, 8, 6] = fold_depth(0.convolution_transpose, 0.bias)\n");
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
        "error: conv_transpose3d: the padding leaves nothing of the depth D of [2, 3, 4, 4, 4]; "
        "use less padding");
}

}  // namespace dpt
