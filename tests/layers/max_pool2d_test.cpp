#include <doctest/doctest.h>

#include "layers/lowered.h"

namespace dpt {

TEST_CASE("max_pool2d moves by its own size unless told otherwise") {
  CHECK(lowered("model: [{max_pool2d: 2}]", real({2, 3, 9, 7})) ==
        "0.max_pool f32[2, 3, 4, 3] = max_pool(input)\n");
  CHECK(lowered(
            "model: [{max_pool2d: {kernel_size: [3, 2], stride: 2, padding: 1, ceil_mode: true}}]",
            real({2, 3, 8, 7})) == "0.max_pool f32[2, 3, 5, 4] = max_pool(input)\n");
}

TEST_CASE("max_pool2d as PyTorch") {
  CHECK(torch_layer("model: [{max_pool2d: 2}]", {2, 3, 9, 7}) == "nn.MaxPool2d(kernel_size=2)");
  CHECK(
      torch_layer("model: [{max_pool2d: {kernel_size: [3, 2], stride: 2, padding: 1, dilation: 2, "
                  "ceil_mode: true}}]",
                  {2, 3, 9, 7}) ==
      "nn.MaxPool2d(kernel_size=[3, 2], stride=2, padding=1, dilation=2, ceil_mode=True)");
}

TEST_CASE("max_pool2d says what it takes") {
  CHECK(complaint(
            lowered("model: [{max_pool2d: {kernel_size: 2, padding: 2}}]", real({2, 3, 9, 7}))) ==
        "error: padding 2 is more than half of the 2 that the window covers");
  CHECK(
      complaint(lowered("model: [{max_pool2d: 8}]", real({2, 3, 9, 7}))) ==
      "error: max_pool2d: its window covers 8 elements along the width W, but the padded input [2, "
      "3, 9, 7] has only 7 there; use a smaller kernel_size, or more padding");
}

TEST_CASE("max_pool2d with ceil_mode takes images smaller than its window, as torch does") {
  CHECK(lowered("model: [{max_pool2d: {kernel_size: 4, stride: 3, ceil_mode: true}}]",
                real({2, 3, 3, 2})) == "0.max_pool f32[2, 3, 1, 1] = max_pool(input)\n");
  CHECK(complaint(lowered("model: [{max_pool2d: {kernel_size: 5, stride: 2, ceil_mode: true}}]",
                          real({2, 3, 3, 4}))) ==
        "error: max_pool2d: its window covers 5 elements along the height H, but the padded input "
        "[2, "
        "3, 3, 4] has only 3 there; use a smaller kernel_size, or more padding");
}

}  // namespace dpt
