#include <doctest/doctest.h>

#include "layers/lowered.h"

namespace dpt {

TEST_CASE("flatten makes one extent of a sample's") {
  CHECK(lowered("model: [flatten]", real({32, 1, 28, 28})) ==
        "0.reshape f32[32, 784] = reshape(input)\n");
}

TEST_CASE("flatten takes torch's start_dim and end_dim, from the end too") {
  CHECK(lowered("model: [{flatten: 2}]", real({2, 3, 4, 5})) ==
        "0.reshape f32[2, 3, 20] = reshape(input)\n");
  CHECK(lowered("model: [{flatten: {start_dim: -3, end_dim: -2}}]", real({2, 3, 4, 5})) ==
        "0.reshape f32[2, 12, 5] = reshape(input)\n");
  CHECK(torch_layer("model: [{flatten: {end_dim: 2}}]", {2, 3, 4, 5}) == "nn.Flatten(end_dim=2)");
}

TEST_CASE("flatten of what is flat is no operation") {
  CHECK(lowered("model: [flatten]", real({2, 3})).empty());
}

TEST_CASE("flatten leaves the batch alone") {
  CHECK(complaint(lowered("model: [{flatten: 0}]", real({2, 3, 4}))) ==
        "error: flatten: start_dim is 0, which is the batch of the input [2, 3, 4]: it would mix "
        "samples");
  CHECK(complaint(lowered("model: [{flatten: 3}]", real({2, 3, 4}))) ==
        "error: flatten: start_dim is 3, but the input [2, 3, 4] has extents -3 to 2");
  CHECK(complaint(lowered("model: [{flatten: {start_dim: 2, end_dim: 1}}]", real({2, 3, 4}))) ==
        "error: flatten: start_dim 2 comes after end_dim 1 for an input of [2, 3, 4]");
}

}  // namespace dpt
