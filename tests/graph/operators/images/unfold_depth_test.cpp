#include <doctest/doctest.h>

#include "graph/operators/run.h"

namespace dpt {

TEST_CASE("unfold_depth takes the planes of each window, and zeros outside") {
  // Two channels of three planes of one pixel, windows of two planes with one plane of padding.
  const Given x{f32({1, 2, 3, 1, 1}), {1, 2, 3, 10, 20, 30}};
  const DepthWindow s{.window = {.kernel = {2, 1}, .before = {1, 0}}};
  CHECK(run_op("unfold_depth", {x}, s) ==
        std::vector<double>{0, 1, 0, 10, 1, 2, 10, 20, 2, 3, 20, 30});
}

TEST_CASE("fold_depth sums the copies of an element, and adds a bias") {
  const Given y{f32({3, 4, 1, 1}), {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}};
  const DepthWindow s{.window = {.kernel = {2, 1}, .before = {1, 0}}, .samples = 1, .extent = 3};
  CHECK(run_op("fold_depth", {y}, s) == std::vector<double>{2 + 5, 6 + 9, 10, 4 + 7, 8 + 11, 12});
  const Given bias{f32({2}), {100, 200}};
  CHECK(run_op("fold_depth", {y, bias}, s) == std::vector<double>{107, 115, 110, 211, 219, 212});
}

TEST_CASE("unfold_depth and fold_depth refuse other shapes") {
  CHECK(refusal("unfold_depth", {f32({1, 2, 3, 4})}, DepthWindow{}) ==
        "unfold_depth: takes [N, C, D, H, W], not [1, 2, 3, 4]");
  CHECK(
      refusal("unfold_depth", {f32({1, 2, 3, 4, 5})}, DepthWindow{.window = {.kernel = {4, 1}}}) ==
      "unfold_depth: a window that covers 4 does not fit into [1, 2, 3, 4, 5], padded to 3");
  CHECK(refusal("fold_depth", {f32({5, 4, 1, 1})},
                DepthWindow{.window = {.kernel = {2, 1}}, .samples = 2, .extent = 3}) ==
        "fold_depth: [5, 4, 1, 1] are not the images of a volume [2, 2, 3, 1, 1]");
}

}  // namespace dpt
