#include <doctest/doctest.h>

#include "graph/operators/run.h"

namespace dpt {

TEST_CASE("add sums from the first input to the last") {
  // In single precision 1e8 + 1 is 1e8: another order would give 1.
  CHECK(run_op("add", {{f32({1, 1}), {1e8}}, {f32({1, 1}), {1}}, {f32({1, 1}), {-1e8}}}) ==
        std::vector<double>{0});
}

TEST_CASE("add refuses shapes that differ") {
  CHECK(refusal("add", {f32({2, 3}), f32({2, 4})}) ==
        "add: f32[2, 3] and f32[2, 4] do not fit together");
  CHECK(refusal("add", {f32({2, 3})}) == "add: takes two or more inputs");
}

}  // namespace dpt
