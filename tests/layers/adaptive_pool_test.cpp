#include <doctest/doctest.h>

#include "layers/lowered.h"

namespace dpt {

TEST_CASE("adaptive_avg_pool1d gives the length that is asked for") {
  CHECK(lowered("model: [{adaptive_avg_pool1d: 2}]", real({2, 3, 9})) ==
        "0.adaptive_avg_pool f32[2, 3, 2] = adaptive_avg_pool(input)\n");
  CHECK(torch_layer("model: [{adaptive_avg_pool1d: 2}]", {2, 3, 9}) == "nn.AdaptiveAvgPool1d(2)");
  CHECK(complaint(lowered("model: [{adaptive_avg_pool1d: 2}]", real({2, 3, 9, 7}))) ==
        "error: adaptive_avg_pool1d takes [N, channels, length], not [2, 3, 9, 7]: use "
        "adaptive_avg_pool2d");
}

TEST_CASE("adaptive_avg_pool2d gives the extents that are asked for") {
  CHECK(lowered("model: [{adaptive_avg_pool2d: 1}]", real({2, 3, 9, 7})) ==
        "0.adaptive_avg_pool f32[2, 3, 1, 1] = adaptive_avg_pool(input)\n");
  CHECK(torch_layer("model: [{adaptive_avg_pool2d: 1}]", {2, 3, 9, 7}) ==
        "nn.AdaptiveAvgPool2d(1)");
  CHECK(torch_layer("model: [{adaptive_avg_pool2d: [3, 2]}]", {2, 3, 9, 7}) ==
        "nn.AdaptiveAvgPool2d([3, 2])");
  CHECK(complaint(lowered("model: [{adaptive_avg_pool2d: [1, 2, 3]}]", real({2, 3, 9, 7}))) ==
        "error: 'output_size' must be one number, or 2 (height, width), not 3");
}

TEST_CASE("adaptive_avg_pool3d pools volumes") {
  CHECK(lowered("model: [{adaptive_avg_pool3d: [2, 3, 1]}]", real({2, 3, 5, 4, 6})) ==
        "0.adaptive_avg_pool f32[2, 3, 2, 3, 1] = adaptive_avg_pool(input)\n");
  CHECK(torch_layer("model: [{adaptive_avg_pool3d: 1}]", {2, 3, 5, 4, 6}) ==
        "nn.AdaptiveAvgPool3d(1)");
  CHECK(torch_layer("model: [{adaptive_avg_pool3d: [2, 3, 1]}]", {2, 3, 5, 4, 6}) ==
        "nn.AdaptiveAvgPool3d([2, 3, 1])");
}

TEST_CASE("adaptive_avg_pool3d says what it takes") {
  CHECK(complaint(lowered("model: [{adaptive_avg_pool3d: 2}]", real({2, 3, 9, 7}))) ==
        "error: adaptive_avg_pool3d takes [N, channels, depth, height, width], not [2, 3, 9, 7]: "
        "use adaptive_avg_pool2d");
}

TEST_CASE("adaptive_max_pool1d gives the length that is asked for") {
  CHECK(lowered("model: [{adaptive_max_pool1d: 2}]", real({2, 3, 9})) ==
        "0.adaptive_max_pool f32[2, 3, 2] = adaptive_max_pool(input)\n");
  CHECK(torch_layer("model: [{adaptive_max_pool1d: 2}]", {2, 3, 9}) == "nn.AdaptiveMaxPool1d(2)");
  CHECK(complaint(lowered("model: [{adaptive_max_pool1d: 2}]", real({2, 3, 9, 7}))) ==
        "error: adaptive_max_pool1d takes [N, channels, length], not [2, 3, 9, 7]: use "
        "adaptive_max_pool2d");
}

TEST_CASE("adaptive_max_pool2d gives the extents that are asked for") {
  CHECK(lowered("model: [{adaptive_max_pool2d: 1}]", real({2, 3, 9, 7})) ==
        "0.adaptive_max_pool f32[2, 3, 1, 1] = adaptive_max_pool(input)\n");
  CHECK(torch_layer("model: [{adaptive_max_pool2d: [3, 2]}]", {2, 3, 9, 7}) ==
        "nn.AdaptiveMaxPool2d([3, 2])");
  CHECK(complaint(lowered("model: [{adaptive_max_pool2d: [1, 2, 3]}]", real({2, 3, 9, 7}))) ==
        "error: 'output_size' must be one number, or 2 (height, width), not 3");
}

TEST_CASE("adaptive_max_pool3d pools volumes") {
  CHECK(lowered("model: [{adaptive_max_pool3d: [2, 3, 1]}]", real({2, 3, 5, 4, 6})) ==
        "0.adaptive_max_pool f32[2, 3, 2, 3, 1] = adaptive_max_pool(input)\n");
  CHECK(torch_layer("model: [{adaptive_max_pool3d: 1}]", {2, 3, 5, 4, 6}) ==
        "nn.AdaptiveMaxPool3d(1)");
  CHECK(torch_layer("model: [{adaptive_max_pool3d: [2, 3, 1]}]", {2, 3, 5, 4, 6}) ==
        "nn.AdaptiveMaxPool3d([2, 3, 1])");
}

TEST_CASE("adaptive_max_pool3d says what it takes") {
  CHECK(complaint(lowered("model: [{adaptive_max_pool3d: 2}]", real({2, 3, 9, 7}))) ==
        "error: adaptive_max_pool3d takes [N, channels, depth, height, width], not [2, 3, 9, 7]: "
        "use adaptive_max_pool2d");
}

}  // namespace dpt
