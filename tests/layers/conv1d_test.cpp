#include <doctest/doctest.h>

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

}  // namespace dpt
