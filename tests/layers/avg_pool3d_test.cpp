#include <doctest/doctest.h>

#include "layers/lowered.h"

namespace dpt {

TEST_CASE("avg_pool3d pools planes, then along the depth") {
  CHECK(
      lowered("model: [{avg_pool3d: {kernel_size: 2, ceil_mode: true}}]", real({2, 3, 5, 4, 6})) ==
      "0.unfold_depth f32[10, 3, 4, 6] = unfold_depth(input)\n"
      "0.avg_pool f32[10, 3, 2, 3] = avg_pool(0.unfold_depth)\n"
      "0.fold_depth f32[2, 3, 5, 2, 3] = fold_depth(0.avg_pool)\n"
      "0.reshape f32[2, 3, 5, 6] = reshape(0.fold_depth)\n"
      "0.avg_pool f32[2, 3, 3, 6] = avg_pool(0.reshape)\n"
      "0.reshape f32[2, 3, 3, 2, 3] = reshape(0.avg_pool)\n");
  CHECK(torch_layer("model: [{avg_pool3d: {kernel_size: 3, stride: [1, 2, 2], padding: 1, "
                    "count_include_pad: false, divisor_override: 5, "
                    "ceil_mode: true}}]",
                    {2, 3, 9, 9, 9}) ==
        "nn.AvgPool3d(kernel_size=3, stride=[1, 2, 2], padding=1, ceil_mode=True, "
        "count_include_pad=False, "
        "divisor_override=5)");
}

TEST_CASE("avg_pool3d leaves out a pass that changes nothing") {
  CHECK(lowered("model: [{avg_pool3d: [1, 2, 2]}]", real({2, 3, 5, 4, 6})) ==
        "0.unfold_depth f32[10, 3, 4, 6] = unfold_depth(input)\n"
        "0.avg_pool f32[10, 3, 2, 3] = avg_pool(0.unfold_depth)\n"
        "0.fold_depth f32[2, 3, 5, 2, 3] = fold_depth(0.avg_pool)\n");
  CHECK(lowered("model: [{avg_pool3d: [2, 1, 1]}]", real({2, 3, 5, 4, 6})) ==
        "0.reshape f32[2, 3, 5, 24] = reshape(input)\n"
        "0.avg_pool f32[2, 3, 2, 24] = avg_pool(0.reshape)\n"
        "0.reshape f32[2, 3, 2, 4, 6] = reshape(0.avg_pool)\n");
}

TEST_CASE("avg_pool3d says what it takes") {
  CHECK(complaint(lowered("model: [{avg_pool3d: 2}]", real({2, 3, 9, 7}))) ==
        "error: avg_pool3d takes [N, channels, depth, height, width], not [2, 3, 9, 7]: use "
        "avg_pool2d");
  CHECK(complaint(lowered("model: [{avg_pool3d: {kernel_size: [2, 4, 4], padding: 2}}]",
                          real({2, 3, 9, 9, 9}))) ==
        "error: padding 2 is more than half of the 2 that the window covers");
}

}  // namespace dpt
