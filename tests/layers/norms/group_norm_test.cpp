#include <doctest/doctest.h>

#include "layers/lowered.h"

namespace dpt {

TEST_CASE("group_norm has a weight and a bias for each channel") {
  CHECK(lowered("model: [{group_norm: 2}]", real({2, 4, 5})) ==
        "0.group_norm f32[2, 4, 5] = group_norm(input, 0.weight, 0.bias)\n");
  CHECK(lowered("model: [{group_norm: {num_groups: 2, affine: false}}]", real({2, 4})) ==
        "0.group_norm f32[2, 4] = group_norm(input)\n");
  CHECK(lowered("model: [{group_norm: {num_groups: 2, bias: false}}]", real({2, 4})) ==
        "0.group_norm f32[2, 4] = group_norm(input, 0.weight)\n");
  CHECK(torch_layer("model: [{group_norm: {num_groups: 2, eps: 0.001, affine: false}}]",
                    {2, 4, 5}) == "nn.GroupNorm(2, 4, eps=0.001, affine=False)");
  CHECK(complaint(lowered("model: [{group_norm: 3}]", real({2, 4, 5}))) ==
        "error: group_norm: the 4 channels of [2, 4, 5] cannot be divided evenly into 3 groups");
}

}  // namespace dpt
