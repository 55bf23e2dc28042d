#include <doctest/doctest.h>

#include "layers/lowered.h"

namespace dpt {

TEST_CASE("glu halves the last dimension, or dim") {
  CHECK(lowered("model: [glu]", real({2, 3, 4})) == "0.glu f32[2, 3, 2] = glu(input)\n");
  CHECK(lowered("model: [{glu: 1}]", real({2, 6, 3})) == "0.glu f32[2, 3, 3] = glu(input)\n");
  CHECK(torch_layer("model: [glu]", {2, 4}) == "nn.GLU()");
  CHECK(torch_layer("model: [{glu: {dim: 1}}]", {2, 4, 3}) == "nn.GLU(dim=1)");
}

TEST_CASE("glu says what it cannot halve") {
  CHECK(complaint(lowered("model: [glu]", real({2, 3}))) ==
        "error: glu: dimension 1 of [2, 3] has 3 elements, which cannot be halved; use an even "
        "number, or another 'dim'");
  CHECK(complaint(lowered("model: [{glu: 0}]", real({2, 3}))) ==
        "error: glu: dim is 0, which is the batch of the input [2, 3]: it would mix samples");
}

}  // namespace dpt
