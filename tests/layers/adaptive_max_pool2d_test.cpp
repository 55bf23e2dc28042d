#include <doctest/doctest.h>

#include "layers/lowered.h"

namespace dpt {

TEST_CASE("adaptive_max_pool2d gives the extents that are asked for") {
  CHECK(lowered("model: [{adaptive_max_pool2d: 1}]", real({2, 3, 9, 7})) ==
        "0.adaptive_max_pool f32[2, 3, 1, 1] = adaptive_max_pool(input)\n");
  CHECK(torch_layer("model: [{adaptive_max_pool2d: [3, 2]}]", {2, 3, 9, 7}) ==
        "nn.AdaptiveMaxPool2d([3, 2])");
  CHECK(complaint(lowered("model: [{adaptive_max_pool2d: [1, 2, 3]}]", real({2, 3, 9, 7}))) ==
        "error: 'output_size' must be one number, or 2 (height, width), not 3");
}

}  // namespace dpt
