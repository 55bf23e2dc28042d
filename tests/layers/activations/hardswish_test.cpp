#include <doctest/doctest.h>

#include "layers/lowered.h"

namespace dpt {

TEST_CASE("hardswish keeps the shape and has no keys") {
  CHECK(lowered("model: [hardswish]", real({2, 3, 4})) ==
        "0.hardswish f32[2, 3, 4] = hardswish(input)\n");
  CHECK(torch_layer("model: [hardswish]", {2, 3}) == "nn.Hardswish()");
  CHECK(complaint(lowered("model: [{hardswish: 1}]", real({2, 3}))) ==
        "error: layer 'hardswish' takes no settings");
}

}  // namespace dpt
