#include <doctest/doctest.h>

#include "graph/operators/run.h"

namespace dpt {

TEST_CASE("multiply is the element-wise product") {
  CHECK(run_op("multiply", {{f32({1, 3}), {1, 2, -3}}, {f32({1, 3}), {4, 0.5, 2}}}) ==
        std::vector<double>{4, 1, -6});
}

TEST_CASE("multiply refuses shapes that differ") {
  CHECK(refusal("multiply", {f32({2, 3}), f32({2, 4})}) ==
        "multiply: f32[2, 3] and f32[2, 4] do not fit together");
  CHECK(refusal("multiply", {f32({2, 3})}) == "multiply: takes two inputs");
}

}  // namespace dpt
