#include <doctest/doctest.h>

#include "layers/lowered.h"

namespace dpt {

TEST_CASE("silu keeps the shape and has no keys") {
  CHECK(lowered("model: [silu]", real({2, 3, 4})) == "0.silu f32[2, 3, 4] = silu(input)\n");
  CHECK(torch_layer("model: [silu]", {2, 3}) == "nn.SiLU()");
  CHECK(complaint(lowered("model: [{silu: 1}]", real({2, 3}))) ==
        "error: layer 'silu' takes no settings");
}

}  // namespace dpt
