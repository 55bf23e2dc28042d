#include <doctest/doctest.h>

#include "layers/lowered.h"

namespace dpt {

// Its numbers are those of batch_norm2d, in whose test they are compared with torch's.
TEST_CASE("batch_norm3d takes volumes") {
  CHECK(torch_layer("model: [batch_norm3d]", {2, 4, 5, 5, 5}) == "nn.BatchNorm3d(4)");
  CHECK(lowered("model: [batch_norm3d]", real({2, 4, 5, 5, 5}), {.training = false}) ==
        "0.running_moments f64[8] = running_moments(0.running_mean, 0.running_var)\n"
        "0.batch_norm f32[2, 4, 5, 5, 5] = batch_norm(input, 0.running_moments, 0.weight, "
        "0.bias)\n");
  CHECK(complaint(lowered("model: [batch_norm3d]", real({2, 4, 5, 5}))) ==
        "error: batch_norm3d takes [N, C, D, H, W], not [2, 4, 5, 5]; for images use "
        "batch_norm2d");
}

}  // namespace dpt
