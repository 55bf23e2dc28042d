#include <doctest/doctest.h>

#include "graph/operators/run.h"

namespace dpt {

TEST_CASE("adaptive_avg_pool cuts the extents as evenly as it can; pieces may overlap") {
  const Given x{f32({1, 1, 5}), {1, 2, 3, 4, 5}};
  CHECK(run_op("adaptive_avg_pool", {x}, Resize{{1, 1, 2}}) == std::vector<double>{2, 4});
  CHECK(run_op("adaptive_avg_pool", {x}, Resize{{1, 1, 1}}) == std::vector<double>{3});
  CHECK(run_op("adaptive_avg_pool_gradient", {{f32({1, 1, 2}), {3, 6}}}, Resize{{1, 1, 5}}) ==
        std::vector<double>{1, 1, 3, 2, 2});
}

}  // namespace dpt
