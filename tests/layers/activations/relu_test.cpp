#include <doctest/doctest.h>

#include "layers/lowered.h"

namespace dpt {

TEST_CASE("relu keeps the shape and has no keys") {
  CHECK(lowered("model: [relu]", real({2, 3, 4})) == "0.relu f32[2, 3, 4] = relu(input)\n");
  CHECK(torch_layer("model: [relu]", {2, 3}) == "nn.ReLU()");
  CHECK(complaint(lowered("model: [{relu: 1}]", real({2, 3}))) ==
        "error: layer 'relu' takes no settings");
}

}  // namespace dpt
