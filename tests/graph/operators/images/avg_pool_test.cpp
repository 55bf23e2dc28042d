#include <doctest/doctest.h>

#include "graph/operators/run.h"

namespace dpt {

TEST_CASE("avg_pool divides by the window, with or without its padding, or by what is asked for") {
  const Given x{f32({1, 1, 4}), {1, 2, 3, 4}};
  const Window w{
      .kernel = {1, 1, 2}, .stride = {1, 1, 2}, .before = {0, 0, 1}, .behind = {0, 0, 1}};
  CHECK(run_op("avg_pool", {x}, Pool{w}) == std::vector<double>{0.5, 2.5, 2});
  CHECK(run_op("avg_pool", {x}, Pool{.window = w, .count_include_pad = false}) ==
        std::vector<double>{1, 2.5, 4});
  CHECK(run_op("avg_pool", {x}, Pool{.window = w, .divisor_override = 1}) ==
        std::vector<double>{1, 5, 4});
}

TEST_CASE("what ceil_mode adds beyond the padding is not counted") {
  const Given x{f32({1, 1, 5}), {1, 2, 3, 4, 5}};
  CHECK(run_op("avg_pool", {x}, Pool{{.kernel = {1, 1, 2}, .stride = {1, 1, 2}}, true}) ==
        std::vector<double>{1.5, 3.5, 5});
}

TEST_CASE("adaptive_avg_pool cuts the extents as evenly as it can; pieces may overlap") {
  const Given x{f32({1, 1, 5}), {1, 2, 3, 4, 5}};
  CHECK(run_op("adaptive_avg_pool", {x}, Resize{{1, 1, 2}}) == std::vector<double>{2, 4});
  CHECK(run_op("adaptive_avg_pool", {x}, Resize{{1, 1, 1}}) == std::vector<double>{3});
  CHECK(run_op("adaptive_avg_pool_gradient", {{f32({1, 1, 2}), {3, 6}}}, Resize{{1, 1, 5}}) ==
        std::vector<double>{1, 1, 3, 2, 2});
}

}  // namespace dpt
