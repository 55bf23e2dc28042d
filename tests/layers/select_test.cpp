#include <doctest/doctest.h>

#include "layers/lowered.h"

namespace dpt {

TEST_CASE("select takes one index of a dimension, which it removes") {
  CHECK(lowered("model: [select: 0]", real({2, 7, 3})) ==
        "0.slice f32[2, 1, 3] = slice(input)\n"
        "0.reshape f32[2, 3] = reshape(0.slice)\n");
  CHECK(lowered("model: [{select: {index: -1, dim: -1}}]", real({2, 7, 3})) ==
        "0.slice f32[2, 7, 1] = slice(input)\n"
        "0.reshape f32[2, 7] = reshape(0.slice)\n");
  CHECK(torch_layer("model: [select: 0]", {2, 7, 3}) == "Select(1, 0)");
  CHECK(torch_layer("model: [{select: {index: -1, dim: 2}}]", {2, 7, 3}) == "Select(2, -1)");
}

TEST_CASE("select refuses indices that do not exist, and samples") {
  CHECK(complaint(lowered("model: [select: 7]", real({2, 7, 3}))) ==
        "error: select: index is 7, but dimension 1 of [2, 7, 3] has indices -7 to 6");
  CHECK(complaint(lowered("model: [{select: {index: 0, dim: 0}}]", real({2, 7, 3}))) ==
        "error: select: dim is 0, which is the batch of the input [2, 7, 3]: it would mix samples");
}

}  // namespace dpt
