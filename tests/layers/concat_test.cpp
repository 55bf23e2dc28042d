#include <doctest/doctest.h>

#include "layers/lowered.h"

namespace dpt {

TEST_CASE("concat puts values one after another") {
  CHECK(lowered("model: [{linear: 4, name: a}, {concat: , from: [a, input]}]", real({2, 3})) ==
        "a.linear f32[2, 4] = linear(input, a.weight, a.bias)\n"
        "1.concat f32[2, 7] = concat(a.linear, input)\n");
  CHECK(torch_layer("model: [{concat: -1, from: [input, input]}]", {2, 3, 4}) ==
        "torch.cat(x, dim=-1)");
}

TEST_CASE("concat needs values that differ in its extent only, and not in the batch") {
  CHECK(complaint(lowered("model: [concat]", real({2, 3}))) ==
        "error: concat takes several values: write from: [a, b]");
  CHECK(complaint(lowered("model: [{linear: 4, name: a}, {concat: 1, from: [a, input]}]",
                          real({2, 5, 3}))) ==
        "error: concat: [2, 5, 4] and [2, 5, 3] differ in more than extent 1");
  CHECK(complaint(lowered("model: [{concat: 0, from: [input, input]}]", real({2, 3}))) ==
        "error: concat: dim is 0, which is the batch of the input [2, 3]: it would mix samples");
}

}  // namespace dpt
