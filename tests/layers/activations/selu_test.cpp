#include <doctest/doctest.h>

#include "layers/lowered.h"

namespace dpt {

TEST_CASE("selu keeps the shape and has no keys") {
  CHECK(lowered("model: [selu]", real({2, 3, 4})) == "0.selu f32[2, 3, 4] = selu(input)\n");
  CHECK(torch_layer("model: [selu]", {2, 3}) == "nn.SELU()");
  CHECK(complaint(lowered("model: [{selu: 1}]", real({2, 3}))) ==
        "error: layer 'selu' takes no settings");
}

}  // namespace dpt
