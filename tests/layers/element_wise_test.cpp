#include <doctest/doctest.h>

#include "layers/lowered.h"

namespace dpt {

TEST_CASE("add sums the values that it names, from left to right") {
  CHECK(lowered("model: [{relu: , name: a}, {tanh: , name: b}, {add: , from: [a, b, input]}]",
                real({2, 3})) ==
        "a.relu f32[2, 3] = relu(input)\n"
        "b.tanh f32[2, 3] = tanh(a.relu)\n"
        "2.add f32[2, 3] = add(a.relu, b.tanh)\n"
        "2.add f32[2, 3] = add(2.add, input)\n");
  CHECK(torch_layer("model: [{add: , from: [input, input]}]", {2, 3}) == "sum(x)");
}

TEST_CASE("add takes several values of one shape") {
  CHECK(complaint(lowered("model: [add]", real({2, 3}))) ==
        "error: add takes several values: write from: [a, b]");
  CHECK(complaint(lowered("model: [{linear: 4, name: a}, {add: , from: [a, input]}]",
                          real({2, 3}))) == "error: add: [2, 4] and [2, 3] are not the same shape");
}

TEST_CASE("multiply takes the product of the values that it names, from left to right") {
  CHECK(lowered("model: [{relu: , name: a}, {tanh: , name: b}, {multiply: , from: [a, b, input]}]",
                real({2, 3})) ==
        "a.relu f32[2, 3] = relu(input)\n"
        "b.tanh f32[2, 3] = tanh(a.relu)\n"
        "2.multiply f32[2, 3] = multiply(a.relu, b.tanh)\n"
        "2.multiply f32[2, 3] = multiply(2.multiply, input)\n");
  CHECK(torch_layer("model: [{multiply: , from: [input, input]}]", {2, 3}) == "math.prod(x)");
}

TEST_CASE("multiply takes several values of one shape") {
  CHECK(complaint(lowered("model: [multiply]", real({2, 3}))) ==
        "error: multiply takes several values: write from: [a, b]");
  CHECK(complaint(lowered("model: [{linear: 4, name: a}, {multiply: , from: [a, input]}]",
                          real({2, 3}))) ==
        "error: multiply: [2, 4] and [2, 3] are not the same shape");
}

}  // namespace dpt
