#include <doctest/doctest.h>

#include "graph/operators/run.h"

namespace dpt {

TEST_CASE("reshape keeps elements and their order, as a view") {
  CHECK(op("reshape").is(Trait::view));
  CHECK(run_op("reshape", {{f32({2, 3}), {1, 2, 3, 4, 5, 6}}}, Reshape{{3, 2}}) ==
        std::vector<double>{1, 2, 3, 4, 5, 6});
}

TEST_CASE("reshape refuses another number of elements") {
  CHECK(refusal("reshape", {f32({2, 3})}, Reshape{{2, 4}}) ==
        "reshape: [2, 3] has 6 elements, [2, 4] would have 8");
}

}  // namespace dpt
