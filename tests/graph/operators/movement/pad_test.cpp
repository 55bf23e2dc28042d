#include <doctest/doctest.h>

#include "graph/operators/run.h"

namespace dpt {

TEST_CASE("pad puts a value around, and cuts off where it is negative") {
  const Given x{f32({1, 2, 2}), {1, 2, 3, 4}};
  CHECK(run_op("pad", {x}, Pad{{0, 0, 1}, {0, 0, 1}, 9}) ==
        std::vector<double>{9, 1, 2, 9, 9, 3, 4, 9});
  CHECK(run_op("pad", {x}, Pad{{0, -1, 1}, {0, 0, -1}}) == std::vector<double>{0, 3});
}

TEST_CASE("pad never touches the samples, and cuts off no more than there is") {
  CHECK(refusal("pad", {f32({2, 3})}, Pad{{1}, {}}) ==
        "pad: 1 before and 0 after do not fit dimension 0 of [2, 3]");
  CHECK(refusal("pad", {f32({2, 3})}, Pad{{0, -2}, {0, -2}}) ==
        "pad: -2 before and -2 after do not fit dimension 1 of [2, 3]");
}

}  // namespace dpt
