#include <doctest/doctest.h>

#include "layers/lowered.h"

namespace dpt {

TEST_CASE("reshape gives samples another shape, of which one extent may be inferred") {
  CHECK(lowered("model: [{reshape: [1, 28, 28]}]", real({2, 784})) ==
        "0.reshape f32[2, 1, 28, 28] = reshape(input)\n");
  CHECK(lowered("model: [{reshape: {shape: [4, -1]}}]", real({2, 3, 8})) ==
        "0.reshape f32[2, 4, 6] = reshape(input)\n");
  CHECK(lowered("model: [{reshape: [3, -1]}]", real({2, 3, 8})).empty());
  CHECK(torch_layer("model: [{reshape: [4, -1]}]", {2, 3, 8}) == "Reshape(4, -1)");
}

TEST_CASE("reshape says what does not fit") {
  CHECK(complaint(lowered("model: [{reshape: [5, -1]}]", real({2, 3, 8}))) ==
        "error: reshape: a sample of [2, 3, 8] has 24 elements, which do not fit into shape "
        "[5, -1]");
  CHECK(
      complaint(lowered("model: [{reshape: [5, 5]}]", real({2, 3, 8}))) ==
      "error: reshape: a sample of [2, 3, 8] has 24 elements, which do not fit into shape [5, 5]");
  CHECK(complaint(lowered("model: [{reshape: [-1, -1]}]", real({2, 3}))) ==
        "error: only one extent of 'shape' can be -1");
  CHECK(complaint(lowered("model: [{reshape: [0, 3]}]", real({2, 3}))) ==
        "error: 'shape' must not have an extent of 0");
  CHECK(complaint(lowered("model: [{reshape: [-2]}]", real({2, 3}))) ==
        "error: 'shape' must be at least 1, or -1 for an extent that is inferred");
  CHECK(complaint(lowered("model: [{reshape: [1, 1, 1, 1, 1, 3]}]", real({2, 3}))) ==
        "error: 'shape' can have at most 5 extents, not 6");
}

}  // namespace dpt
