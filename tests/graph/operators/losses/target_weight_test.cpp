#include <doctest/doctest.h>

#include "graph/operators/run.h"

namespace dpt {

TEST_CASE("target_weight counts targets that are not ignored, or sums their weights") {
  const Given y{i32({4}), {0, 2, -100, 2}}, w{f32({3}), {0.5, 8, 2}};
  CHECK(run_op("target_weight", {y}, NllLoss{}) == std::vector<double>{3});
  CHECK(run_op("target_weight", {y, w}, NllLoss{}) == std::vector<double>{4.5});
  CHECK_THROWS_AS(run_op("target_weight", {y, w}, NllLoss{.ignore_index = 0}), Error);
}

}  // namespace dpt
