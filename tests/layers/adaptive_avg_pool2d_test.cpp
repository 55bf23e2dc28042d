#include <doctest/doctest.h>

#include "layers/lowered.h"

namespace dpt {

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

}  // namespace dpt
