#include <doctest/doctest.h>

#include "layers/lowered.h"

namespace dpt {

TEST_CASE("pixel_shuffle makes pixels of channels") {
  CHECK(lowered("model: [{pixel_shuffle: 2}]", real({2, 12, 4, 5})) ==
        "0.reshape f32[2, 3, 2, 2, 4, 5] = reshape(input)\n"
        "0.permute f32[2, 3, 4, 2, 5, 2] = permute(0.reshape)\n"
        "0.reshape f32[2, 3, 8, 10] = reshape(0.permute)\n");
  CHECK(lowered("model: [{pixel_shuffle: {upscale_factor: 1}}]", real({2, 3, 4, 5})).empty());
  CHECK(torch_layer("model: [{pixel_shuffle: 2}]", {2, 12, 4, 5}) == "nn.PixelShuffle(2)");
}

TEST_CASE("pixel_unshuffle makes channels of pixels") {
  CHECK(lowered("model: [{pixel_unshuffle: 2}]", real({2, 3, 8, 10})) ==
        "0.reshape f32[2, 3, 4, 2, 5, 2] = reshape(input)\n"
        "0.permute f32[2, 3, 2, 2, 4, 5] = permute(0.reshape)\n"
        "0.reshape f32[2, 12, 4, 5] = reshape(0.permute)\n");
  CHECK(lowered("model: [{pixel_unshuffle: {downscale_factor: 1}}]", real({2, 3, 4, 5})).empty());
  CHECK(torch_layer("model: [{pixel_unshuffle: 2}]", {2, 3, 8, 10}) == "nn.PixelUnshuffle(2)");
  CHECK(complaint(lowered("model: [{pixel_unshuffle: 2}]", real({2, 6, 4, 5}))) ==
        "error: pixel_unshuffle: height 4 and width 5 of [2, 6, 4, 5] are not multiples of "
        "downscale_factor 2");
}

TEST_CASE("pixel_shuffle says what it takes") {
  CHECK(complaint(lowered("model: [{pixel_shuffle: 2}]", real({2, 6, 4, 5}))) ==
        "error: pixel_shuffle: the 6 channels of [2, 6, 4, 5] are not a multiple of 4, the square "
        "of upscale_factor 2");
  CHECK(complaint(lowered("model: [{pixel_shuffle: 2}]", real({2, 4, 5}))) ==
        "error: pixel_shuffle takes [N, channels, height, width], not [2, 4, 5]");
  CHECK(complaint(lowered("model: [pixel_shuffle]", real({2, 4, 5, 5}))) ==
        "error: layer 'pixel_shuffle' needs 'upscale_factor': factor of the height and of the "
        "width");
}

}  // namespace dpt
