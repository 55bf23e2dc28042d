#include <doctest/doctest.h>

#include "graph/operators/run.h"

namespace dpt {

TEST_CASE("concat puts the inputs of each sample behind one another") {
  CHECK(run_op("concat", {{f32({2, 1}), {1, 2}}, {f32({2, 2}), {3, 4, 5, 6}}}, Concat{1}) ==
        std::vector<double>{1, 3, 4, 2, 5, 6});
}

TEST_CASE("concat refuses inputs that differ elsewhere") {
  CHECK(refusal("concat", {f32({2, 1, 4}), f32({2, 1, 5})}, Concat{1}) ==
        "concat: f32[2, 1, 4] and f32[2, 1, 5] differ in more than dimension 1");
}

}  // namespace dpt
