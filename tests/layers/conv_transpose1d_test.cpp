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

}  // namespace dpt
