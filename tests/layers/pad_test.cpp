#include <doctest/doctest.h>

#include "layers/lowered.h"

namespace dpt {

TEST_CASE("pad goes around images, or has numbers for each side, the last extent first") {
  CHECK(lowered("model: [{pad: 2}]", real({2, 3, 4, 5})) == "0.pad f32[2, 3, 8, 9] = pad(input)\n");
  CHECK(lowered("model: [{pad: 2}]", real({2, 5})) == "0.pad f32[2, 9] = pad(input)\n");
  CHECK(lowered("model: [{pad: [1, -2, 0, 3]}]", real({2, 3, 4, 5})) ==
        "0.pad f32[2, 3, 7, 4] = pad(input)\n");
}

TEST_CASE("pad as PyTorch") {
  CHECK(torch_layer("model: [{pad: 2}]", {2, 3, 4, 5}) == "nn.ConstantPad2d([2, 2, 2, 2], 0.0)");
  CHECK(torch_layer("model: [{pad: {padding: [1, 0], value: -1}}]", {2, 3, 4}) ==
        "nn.ConstantPad1d([1, 0], -1.0)");
}

TEST_CASE("pad says what does not fit") {
  CHECK(complaint(lowered("model: [{pad: [1, 2, 3]}]", real({2, 3, 4}))) ==
        "error: 'padding' must be one number, or 2, 4 or 6, not 3");
  CHECK(complaint(lowered("model: [{pad: [1, 1, 1, 1]}]", real({2, 3}))) ==
        "error: pad: 4 numbers pad 2 dimensions after the batch, but [2, 3] has only 1");
  CHECK(complaint(lowered("model: [{pad: [-2, -1]}]", real({2, 3}))) ==
        "error: pad: -2 and -1 cut off all of extent 1 of [2, 3]");
}

TEST_CASE("pad copies elements of an image") {
  CHECK(lowered("model: [{pad: {padding: 1, mode: reflect}}]", real({2, 3, 4, 5})) ==
        "0.pad_inside f32[2, 3, 6, 7] = pad_inside{reflect}(input)\n");
  CHECK(torch_layer("model: [{pad: {padding: [1, 2], mode: circular}}]", {2, 3, 4, 5}) ==
        "nn.CircularPad2d([1, 2, 0, 0])");
  CHECK(torch_layer("model: [{pad: {padding: 2, mode: replicate}}]", {2, 3, 4}) ==
        "nn.ReplicationPad1d([2, 2])");
  CHECK(torch_layer("model: [{pad: {padding: 2, mode: reflect}}]", {2, 3, 4, 5}) ==
        "nn.ReflectionPad2d([2, 2, 2, 2])");
}

TEST_CASE("pad with copies removes elements where a number is negative") {
  CHECK(lowered("model: [{pad: {padding: [-4, 1], mode: replicate}}]", real({2, 3, 4})) ==
        "0.pad_inside f32[2, 3, 5] = pad_inside{replicate}(input)\n"
        "0.pad f32[2, 3, 1] = pad(0.pad_inside)\n");
  CHECK(lowered("model: [{pad: {padding: [-1, 1], mode: circular}}]", real({2, 3, 4})) ==
        "0.pad f32[2, 3, 3] = pad(input)\n"
        "0.pad_inside f32[2, 3, 4] = pad_inside{circular}(0.pad)\n");
  CHECK(lowered("model: [{pad: {padding: -1, mode: replicate}}]", real({2, 3, 4})) ==
        "0.pad f32[2, 3, 2] = pad(input)\n");
}

TEST_CASE("pad says where it has nothing to copy") {
  CHECK(complaint(lowered("model: [{pad: {padding: 4, mode: reflect}}]", real({2, 3, 4}))) ==
        "error: pad: mode reflect cannot add 4 elements to the length L of [2, 3, 4], which has 4; "
        "use less padding, or replicate");
  CHECK(complaint(lowered("model: [{pad: {padding: 1, mode: reflect}}]", real({2, 3}))) ==
        "error: pad: mode reflect takes [N, channels, ...] with 1 to 3 more dimensions and pads "
        "behind the channels: 2 numbers do not fit [2, 3]");
  CHECK(complaint(lowered("model: [{pad: {padding: [-2, -2], mode: reflect}}]", real({2, 3, 4}))) ==
        "error: pad: -2 and -2 cut off all of extent 2 of [2, 3, 4]");
  CHECK(complaint(lowered("model: [{pad: {padding: [-4, 1], mode: circular}}]", real({2, 3, 4}))) ==
        "error: pad: -4 and 1 cut off all of extent 2 of [2, 3, 4]");
  CHECK(
      complaint(lowered("model: [{pad: {padding: [-2, 3], mode: circular}}]", real({2, 3, 4}))) ==
      "error: pad: mode circular cannot add 3 elements to the length L of [2, 3, 2], which has 2; "
      "use less padding, or replicate");
  CHECK(complaint(lowered("model: [{pad: {padding: 1, mode: reflect, value: 2}}]",
                          real({2, 3, 4}))) == "error: 'value' needs mode constant");
}

}  // namespace dpt
