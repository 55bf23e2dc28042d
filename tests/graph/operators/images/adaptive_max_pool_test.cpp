#include <cmath>

#include <doctest/doctest.h>

#include "graph/operators/run.h"

namespace dpt {

TEST_CASE("adaptive_max_pool takes the largest of each piece, and its index in the channel") {
  const Given x{f32({1, 1, 5}), {1, 5, 3, 4, 2}};
  CHECK(run_op("adaptive_max_pool", {x}, Resize{{1, 1, 2}}) == std::vector<double>{5, 4});
  CHECK(run_op("adaptive_max_pool", {x}, Resize{{1, 1, 2}}, {}, 1) == std::vector<double>{1, 3});
  const Given image{f32({1, 1, 2, 2}), {1, 2, 4, 3}};
  CHECK(run_op("adaptive_max_pool", {image}, Resize{{1, 1, 1}}, {}, 1) == std::vector<double>{2});
}

TEST_CASE("adaptive_max_pool takes the first of equal elements, and nan before all others") {
  const Given same{f32({1, 1, 3}), {2, 2, 2}}, none{f32({1, 1, 3}), {1, NAN, 3}};
  CHECK(run_op("adaptive_max_pool", {same}, Resize{{1, 1, 1}}, {}, 1) == std::vector<double>{0});
  CHECK(std::isnan(run_op("adaptive_max_pool", {none}, Resize{{1, 1, 1}})[0]));
}

TEST_CASE("adaptive_max_pool's gradient sums where pieces share their largest element") {
  const Given dy{f32({1, 1, 2}), {1, 2}}, indices{i32({1, 1, 2}), {2, 2}};
  CHECK(run_op("adaptive_max_pool_gradient", {dy, indices}, Resize{{1, 1, 5}}) ==
        std::vector<double>{0, 0, 3, 0, 0});
}

TEST_CASE("adaptive_max_pool refuses empty images") {
  CHECK(refusal("adaptive_max_pool", {f32({1, 1, 0})}, Resize{{1, 1, 1}}) ==
        "adaptive_max_pool: an empty image has no maximum, [1, 1, 0] to [1, 1, 1]");
}

}  // namespace dpt
