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

}  // namespace dpt
