#include <doctest/doctest.h>

#include "layers/lowered.h"

namespace dpt {

TEST_CASE("relu6 keeps the shape and has no keys") {
  CHECK(lowered("model: [relu6]", real({2, 3, 4})) == "0.relu6 f32[2, 3, 4] = relu6(input)\n");
  CHECK(torch_layer("model: [relu6]", {2, 3}) == "nn.ReLU6()");
  CHECK(complaint(lowered("model: [{relu6: 1}]", real({2, 3}))) ==
        "error: layer 'relu6' takes no settings");
}

}  // namespace dpt
