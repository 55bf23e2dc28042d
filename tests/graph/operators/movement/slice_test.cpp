#include <doctest/doctest.h>

#include "graph/operators/run.h"

namespace dpt {

TEST_CASE("slice cuts a piece out, its gradient puts zeros around one") {
  CHECK(run_op("slice", {{f32({2, 3}), {1, 2, 3, 4, 5, 6}}}, SliceOf{1, 1, 2}) ==
        std::vector<double>{2, 3, 5, 6});
  CHECK(run_op("slice_gradient", {{f32({2, 2}), {1, 2, 3, 4}}}, SliceOf{1, 1, 2, 4}) ==
        std::vector<double>{0, 1, 2, 0, 0, 3, 4, 0});
}

TEST_CASE("slice refuses extents that are not there") {
  CHECK(refusal("slice", {f32({2, 3})}, SliceOf{1, 2, 2}) ==
        "slice: [2, 3] has no extents 2 to 4 in dimension 1");
}

}  // namespace dpt
