#include <doctest/doctest.h>

#include "layers/lowered.h"

namespace dpt {

TEST_CASE("max_pool1d goes over sequences") {
  CHECK(lowered("model: [{max_pool1d: 2}]", real({2, 3, 9})) ==
        "0.max_pool f32[2, 3, 4] = max_pool(input)\n");
  CHECK(lowered("model: [{max_pool1d: {kernel_size: 3, stride: 2, padding: 1, ceil_mode: true}}]",
                real({2, 3, 8})) == "0.max_pool f32[2, 3, 5] = max_pool(input)\n");
  CHECK(torch_layer("model: [{max_pool1d: {kernel_size: 3, stride: 2, padding: 1, dilation: 2, "
                    "ceil_mode: true}}]",
                    {2, 3, 9}) ==
        "nn.MaxPool1d(kernel_size=3, stride=2, padding=1, dilation=2, ceil_mode=True)");
}

TEST_CASE("max_pool1d says what it takes") {
  CHECK(complaint(lowered("model: [{max_pool1d: 2}]", real({2, 3, 9, 7}))) ==
        "error: max_pool1d takes [N, channels, length], not [2, 3, 9, 7]: use max_pool2d");
  CHECK(complaint(lowered("model: [{max_pool1d: [2, 2]}]", real({2, 3, 9}))) ==
        "error: 'kernel_size' must be one number, not 2");
  CHECK(
      complaint(lowered("model: [{max_pool1d: {kernel_size: 2, padding: 2}}]", real({2, 3, 9}))) ==
      "error: padding 2 is more than half of the 2 that the window covers");
}

}  // namespace dpt
