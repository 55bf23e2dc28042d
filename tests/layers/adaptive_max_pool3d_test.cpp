#include <doctest/doctest.h>

#include "layers/lowered.h"

namespace dpt {

TEST_CASE("adaptive_max_pool3d pools planes, then along the depth") {
  CHECK(lowered("model: [{adaptive_max_pool3d: [2, 3, 1]}]", real({2, 3, 5, 4, 6})) ==
        "0.unfold_depth f32[10, 3, 4, 6] = unfold_depth(input)\n"
        "0.adaptive_max_pool f32[10, 3, 3, 1] = adaptive_max_pool(0.unfold_depth)\n"
        "0.fold_depth f32[2, 3, 5, 3, 1] = fold_depth(0.adaptive_max_pool)\n"
        "0.reshape f32[2, 3, 5, 3] = reshape(0.fold_depth)\n"
        "0.adaptive_max_pool f32[2, 3, 2, 3] = adaptive_max_pool(0.reshape)\n"
        "0.reshape f32[2, 3, 2, 3, 1] = reshape(0.adaptive_max_pool)\n");
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
