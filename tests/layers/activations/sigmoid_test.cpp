#include <doctest/doctest.h>

#include "layers/lowered.h"

namespace dpt {

TEST_CASE("sigmoid keeps the shape and has no keys") {
  CHECK(lowered("model: [sigmoid]", real({2, 3, 4})) ==
        "0.sigmoid f32[2, 3, 4] = sigmoid(input)\n");
  CHECK(torch_layer("model: [sigmoid]", {2, 3}) == "nn.Sigmoid()");
  CHECK(complaint(lowered("model: [{sigmoid: 1}]", real({2, 3}))) ==
        "error: layer 'sigmoid' takes no settings");
}

}  // namespace dpt
