#include <doctest/doctest.h>

#include "layers/lowered.h"

namespace dpt {

TEST_CASE("tanh keeps the shape and has no keys") {
  CHECK(lowered("model: [tanh]", real({2, 3, 4})) == "0.tanh f32[2, 3, 4] = tanh(input)\n");
  CHECK(torch_layer("model: [tanh]", {2, 3}) == "nn.Tanh()");
  CHECK(complaint(lowered("model: [{tanh: 1}]", real({2, 3}))) ==
        "error: layer 'tanh' takes no settings");
}

}  // namespace dpt
