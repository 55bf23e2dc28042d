#include <doctest/doctest.h>

#include "layers/lowered.h"

namespace dpt {

TEST_CASE("upsample by a factor, or to a size") {
  CHECK(lowered("model: [{upsample: 2}]", real({2, 3, 4, 5})) ==
        "0.upsample_nearest f32[2, 3, 8, 10] = upsample_nearest(input)\n");
  CHECK(lowered("model: [{upsample: [1.5, 2.4]}]", real({2, 3, 4, 5})) ==
        "0.upsample_nearest f32[2, 3, 6, 12] = upsample_nearest(input)\n");
  CHECK(lowered("model: [{upsample: {size: 7}}]", real({2, 3, 4})) ==
        "0.upsample_nearest f32[2, 3, 7] = upsample_nearest(input)\n");
}

TEST_CASE("upsample as PyTorch") {
  CHECK(torch_layer("model: [{upsample: 2}]", {2, 3, 4, 5}) == "nn.Upsample(scale_factor=2.0)");
  CHECK(torch_layer("model: [{upsample: [1.5, 2.4]}]", {2, 3, 4, 5}) ==
        "nn.Upsample(scale_factor=(1.5, 2.4))");
  CHECK(torch_layer("model: [{upsample: {size: [7, 8]}}]", {2, 3, 4, 5}) ==
        "nn.Upsample(size=[7, 8])");
}

TEST_CASE("upsample says what it takes") {
  CHECK(complaint(lowered("model: [upsample]", real({2, 3, 4, 5}))) ==
        "error: upsample needs either 'scale_factor' or 'size'");
  CHECK(complaint(lowered("model: [{upsample: [2, 2]}]", real({2, 3, 4}))) ==
        "error: upsample: 'scale_factor' must be one number for [2, 3, 4], not 2");
  CHECK(complaint(lowered("model: [{upsample: 0.1}]", real({2, 3, 4}))) ==
        "error: upsample: scale_factor 0.1 leaves nothing of the length L of [2, 3, 4], which has "
        "4; use at least 0.25");
  CHECK(complaint(lowered("model: [{upsample: {size: [2, 2]}}]", real({2, 3, 4, 5, 6}))) ==
        "error: upsample: 'size' must be one number, or 3 (depth, height, width) for [2, 3, 4, 5, "
        "6], not 2");
  CHECK(complaint(lowered("model: [{upsample: [2, 0.1, 0.5]}]", real({2, 3, 4, 5, 6}))) ==
        "error: upsample: scale_factor 0.1 leaves nothing of the height H of [2, 3, 4, 5, 6], "
        "which has 5; use at least 0.2");
}

TEST_CASE("upsample interpolates") {
  CHECK(lowered("model: [{upsample: {scale_factor: 2, mode: bilinear}}]", real({2, 3, 4, 5})) ==
        "0.upsample_bilinear f32[2, 3, 8, 10] = upsample_bilinear(input)\n");
  CHECK(lowered("model: [{upsample: {size: 7, mode: linear, align_corners: true}}]",
                real({2, 3, 4})) ==
        "0.upsample_bilinear f32[2, 3, 7] = upsample_bilinear(input)\n");
  CHECK(torch_layer("model: [{upsample: {scale_factor: 2, mode: bilinear, align_corners: true}}]",
                    {2, 3, 4, 5}) ==
        "nn.Upsample(scale_factor=2.0, mode=\"bilinear\", align_corners=True)");
}

TEST_CASE("upsample takes the pixel at the center, or cubic interpolation") {
  CHECK(lowered("model: [{upsample: {size: 7, mode: nearest-exact}}]", real({2, 3, 4})) ==
        "0.upsample_nearest f32[2, 3, 7] = upsample_nearest(input)\n");
  CHECK(lowered("model: [{upsample: {size: 7, mode: bicubic}}]", real({2, 3, 4, 5})) ==
        "0.upsample_bicubic f32[2, 3, 7, 7] = upsample_bicubic(input)\n");
  CHECK(torch_layer("model: [{upsample: {size: 7, mode: bicubic, align_corners: true}}]",
                    {2, 3, 4, 5}) == "nn.Upsample(size=7, mode=\"bicubic\", align_corners=True)");
  CHECK(complaint(lowered("model: [{upsample: {size: 7, mode: bicubic}}]", real({2, 3, 4}))) ==
        "error: upsample: mode bicubic does not take [2, 3, 4]: use mode linear");
}

TEST_CASE("upsample's modes are those of the number of extents") {
  CHECK(complaint(lowered("model: [{upsample: {size: 7, mode: bilinear}}]", real({2, 3, 4}))) ==
        "error: upsample: mode bilinear does not take [2, 3, 4]: use mode linear");
  CHECK(complaint(lowered("model: [{upsample: {size: 7, mode: linear}}]", real({2, 3, 4, 5}))) ==
        "error: upsample: mode linear does not take [2, 3, 4, 5]: use mode bilinear");
  CHECK(
      complaint(lowered("model: [{upsample: {size: 7, mode: bilinear}}]", real({2, 3, 4, 5, 6}))) ==
      "error: upsample: mode bilinear does not take [2, 3, 4, 5, 6]: use mode trilinear");
  CHECK(
      complaint(lowered("model: [{upsample: {size: 7, align_corners: true}}]", real({2, 3, 4}))) ==
      "error: 'align_corners' needs mode linear, bilinear, bicubic or trilinear");
}

}  // namespace dpt
