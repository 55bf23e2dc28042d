#include <doctest/doctest.h>

#include "graph/operators/run.h"

namespace dpt {

TEST_CASE("permute exchanges dimensions behind the batch") {
  const Given x{f32({1, 2, 3}), {1, 2, 3, 4, 5, 6}};
  CHECK(run_op("permute", {x}, Permute{{0, 2, 1}}) == std::vector<double>{1, 4, 2, 5, 3, 6});
  CHECK(run_op("permute", {{f32({1, 2, 1, 3}), {1, 2, 3, 4, 5, 6}}}, Permute{{0, 3, 1, 2}}) ==
        std::vector<double>{1, 4, 2, 5, 3, 6});
  CHECK(run_op("permute", {{i32({2, 0, 3}), {}}}, Permute{{0, 2, 1}}).empty());
}

TEST_CASE("permute refuses an order that is none, or that moves the batch") {
  const std::string wrong = "permute: no order of the dimensions of [2, 3, 4] behind the batch";
  CHECK(refusal("permute", {f32({2, 3, 4})}, Permute{{0, 1, 1}}) == wrong);
  CHECK(refusal("permute", {f32({2, 3, 4})}, Permute{{1, 0, 2}}) == wrong);
  CHECK(refusal("permute", {f32({2, 3, 4})}, Permute{{0, 1, 3}}) == wrong);
}

}  // namespace dpt
