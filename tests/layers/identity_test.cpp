#include <doctest/doctest.h>

#include "layers/lowered.h"

namespace dpt {

TEST_CASE("identity adds nothing to the graph") {
  CHECK(lowered("model: [identity, relu]", real({2, 3})) == "1.relu f32[2, 3] = relu(input)\n");
  CHECK(torch_layer("model: [identity]", {2, 3}) == "nn.Identity()");
}

}  // namespace dpt
